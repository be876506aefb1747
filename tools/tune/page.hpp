// The page of `kintsugi tune-program`: graph of the sites, final table, every step.
#pragma once

#include <string>

#include "tune/tuner.hpp"

namespace kintsugi::tools {

std::string tuning_page(const TuneRequest& request, const Tuning& tuning);

}  // namespace kintsugi::tools
