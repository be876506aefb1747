// How far residuals of unscaled vectors may be scaled: a function of the operands' largest exponent alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arith/host_device.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// Eight bytes: a device's report takes them in one access.
struct alignas(8) ResidualFit {
  std::int32_t residual_exponent = 0;
  Rounding first_rounding = Rounding::nearest_even;

  friend constexpr bool operator==(const ResidualFit&, const ResidualFit&) = default;
};

// Subnormal high parts of fp16 leave up to 2^-25; this makes it 2^15.
inline constexpr int most_residual_exponent = 40;

// For a first slice of `format`, p significant bits, and a residual `asked` binades higher; `largest`
// exponents are no larger than the format's (h2sgemm, Eq. 6, with one less: see schemes/h2sgemm.hpp). Rounded
// to nearest, residuals are at most 2^(largest - p). Of the largest exponent that the format has, the high
// part is truncated, since it might round to infinity, and residuals are below 2^(largest - p + 1).
KINTSUGI_HOST_DEVICE constexpr ResidualFit fit_residual(const Format& format, int asked, int largest) {
  const bool truncates = largest >= format.max_exponent;
  const int allowed = format.max_exponent + format.significand_bits - largest - (truncates ? 1 : 0);
  return {std::min({asked, allowed, most_residual_exponent}),
          truncates ? Rounding::towards_zero : Rounding::nearest_even};
}

}  // namespace kintsugi::core
