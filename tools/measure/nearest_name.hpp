// Hints for misspelt names from the library, for the laboratory and the program.
#pragma once

#include "base/text/nearest_name.hpp"

namespace kintsugi::measure {

using core::accepted_names;
using core::did_you_mean;
using core::nearest_name;

}  // namespace kintsugi::measure
