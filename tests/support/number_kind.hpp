// Kind of a number, for results that are compared by kind alone: finite, NaN or an infinity of either sign.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace kintsugi::test {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

enum class NumberKind : std::uint8_t { finite, nan, plus_infinity, minus_infinity };

inline NumberKind kind_of(double x) {
  if (std::isnan(x)) return NumberKind::nan;
  if (std::isinf(x)) return x > 0 ? NumberKind::plus_infinity : NumberKind::minus_infinity;
  return NumberKind::finite;
}

}  // namespace kintsugi::test
