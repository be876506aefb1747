// The HTML page of `kintsugi tune-program`: table and graph of the sites, table of the search's steps.
#pragma once

#include <string>

#include "tune/tuner.hpp"

namespace kintsugi::tools {

std::string tuning_page(const TuneRequest& request, const Tuning& tuning);

}  // namespace kintsugi::tools
