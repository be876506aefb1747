// Rounding modes of IEEE 754.
#pragma once

#include <cstdint>

namespace kintsugi::core {

// In the order of the modes of MXCSR.
enum class RoundingMode : std::uint8_t {
  nearest,  // ties to even
  down,
  up,
  toward_zero,
};

inline constexpr const char* rounding_names[] = {"nearest", "down", "up", "zero"};
constexpr const char* rounding_name(RoundingMode rounding) {
  return rounding_names[static_cast<std::uint8_t>(rounding)];
}

// True if a magnitude that is not representable becomes the next larger one. Precondition: not `nearest`.
constexpr bool enlarges_magnitude(RoundingMode rounding, bool is_negative) {
  return rounding == (is_negative ? RoundingMode::down : RoundingMode::up);
}

// A sum that is exactly zero: -0 rounded down, else +0.
template <class T>
constexpr T zero_sum(RoundingMode rounding) {
  return rounding == RoundingMode::down ? -T(0) : T(0);
}

}  // namespace kintsugi::core
