// Largest scale of residuals of unscaled vectors, from the operands' largest exponent alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arith/host_device.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// The alignment lets device code write both members in one access.
struct alignas(8) ResidualFit {
  std::int32_t residual_exponent = 0;
  Rounding first_rounding = Rounding::nearest_even;

  friend constexpr bool operator==(const ResidualFit&, const ResidualFit&) = default;
};

// Residuals of fp16's subnormal high parts are at most 2^-25; 2^40 scales them to 2^15, near fp16's largest
// number.
inline constexpr int max_residual_exponent = 40;

// Returns the residual exponent, at most `requested`, and the first slice's rounding. `format` is that of the
// slices and has p significant bits. `largest` is the operands' largest exponent, at most the format's
// largest one. The exponent is that of h2sgemm, Eq. 6, less one (schemes/h2sgemm.hpp gives the reason). The
// first slice is rounded to nearest, which leaves residuals of at most 2^(largest - p). If `largest` is the
// format's largest exponent, rounding might give infinity; so the first slice is truncated, and residuals are
// below 2^(largest - p + 1).
KINTSUGI_HOST_DEVICE constexpr ResidualFit fit_residual(const Format& format, int requested, int largest) {
  const bool truncates = largest >= format.max_exponent;
  const int allowed = format.max_exponent + format.significand_bits - largest - (truncates ? 1 : 0);
  return {std::min({requested, allowed, max_residual_exponent}),
          truncates ? Rounding::towards_zero : Rounding::nearest_even};
}

}  // namespace kintsugi::core
