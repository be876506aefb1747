// Scales by norms (residue_scale.hpp) for kernels: L from a sum of squares in double.
#pragma once

#include <cstdint>

#include "arith/exponent.hpp"
#include "arith/host_device.hpp"
#include "arith/range.hpp"
#include "arith/residue/residue_scale.hpp"
#include "base/bits.hpp"

namespace kintsugi::core {

// Returns L of a vector of up to 2^32 elements from its sum of squares in double, added in any order. It may
// differ from the L of integers D, but bounds the integers a' = RN(2^s a) of the scale that follows from it:
//
// - The sum has a relative error of at most 2^-20, so 2^L is at least (1 + 2^-20) times the exact sum of
//   (2^(14 - e) a_p)^2. Squares that underflow are too small to count beside the largest element's. If they
//   could count, or if the sum could overflow, L is that of elements that all are as large as the largest.
// - So |2^s a| <= (1 - 2^-22) 2^(R/2), and |a'| <= |2^s a| + sqrt(k) / 2 <= 2^(R/2) if k 2^44 <= 2^R, which
//   integers of at least 22 bits by exponents imply.
KINTSUGI_HOST_DEVICE inline int bits_of_squares(double squares, const VectorRange& range,
                                                std::int64_t length) {
  constexpr int most = 450;  // |exponent| of the largest magnitude
  if (!range.finite() || (range.flags & VectorRange::all_zero) != 0 || range.largest < -most ||
      range.largest > most)
    return 2 * (norm_digits + 1) + 64 - leading_zeros(static_cast<std::uint64_t>(length));
  return exponent_of(squares * (1 + 0x1p-19)) + 1 + 2 * (norm_digits - range.largest);
}

}  // namespace kintsugi::core
