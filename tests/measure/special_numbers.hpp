// Infinity and NaN of FP64, and the names of roundings as the laboratory's functions take them.
#pragma once

#include <limits>

#include "formats/format.hpp"

namespace kintsugi::measure {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

inline const char* name_of(core::Rounding rounding) {
  switch (rounding) {
    case core::Rounding::nearest_even: return "nearest-even";
    case core::Rounding::towards_zero: return "towards-zero";
    case core::Rounding::bit_cut: return "bit-cut";
  }
  return "";
}

}  // namespace kintsugi::measure
