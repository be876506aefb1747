// JSON documents that describe the registries of schemes, engines and settings; their schemas are in
// docs/schema/.
#pragma once

#include <string>

#include "base/settings.hpp"

namespace kintsugi::core {

std::string describe_schemes();
std::string describe_engines();
std::string describe_settings(const Settings& settings);

}  // namespace kintsugi::core
