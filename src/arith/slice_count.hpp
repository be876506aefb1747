// Decisions on the number of slices, by Algorithm 3 of dgemm-tc.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arith/exact/exact_rounding.hpp"
#include "arith/exact/exact_sum.hpp"
#include "arith/host_device.hpp"
#include "arith/successive.hpp"

namespace kintsugi::core {

inline constexpr int max_successive_slices = 32;

// True if a row needs no more slices after its first d ones: s_i > t_i(d) of Algorithm 3, with u = 2^-bits.
// `row_sum` and `slice_sum` are the weighted sums of the row and of its last slice. True also if the last
// slice is zero.
KINTSUGI_HOST_DEVICE inline bool enough_slices(const Scaled& row_sum, const Scaled& slice_sum, int d,
                                               std::int64_t k, int bits) {
  if (slice_sum.fraction == 0) return true;
  // Squares instead of a root: 4 k s^2 > (d + 1)^2 2^(2 bits) t^2.
  const double ratio = times_power_of_two(magnitude_ratio(row_sum, slice_sum), -bits);
  return 4 * static_cast<double>(k) * ratio * ratio > static_cast<double>(d + 1) * (d + 1);
}

// Largest numbers of slices that rows of a block of C need. The rows are of two kinds.
struct SliceCounts {
  std::int32_t enough = 0;     // rows for which Algorithm 3 finds enough slices (enough_slices())
  std::int32_t exhausted = 0;  // all other rows, which are split until their residuals are zero
};

// Number of slices of A and of B for a block of C, and the products of slices that are computed. p and q
// count slices from 0.
struct SliceDepth {
  int a = 0;
  int b = 0;
  bool fast = false;           // only products of slice p of A and slice q of B with p + q < a
  bool a_is_complete = false;  // no row has a residual after `a` slices

  // Number of products that slice q of B takes part in.
  KINTSUGI_HOST_DEVICE constexpr int products(int q) const {
    if (q >= b) return 0;
    return !fast ? a : q < a ? a - q : 0;
  }
  // Number of slices that an error bound may assume for every vector of A and B.
  KINTSUGI_HOST_DEVICE constexpr int least() const { return a_is_complete || b < a ? b : a; }
};

// Chooses the slices of a block (dgemm-tc, section 3.2). If the row with the most slices was split until its
// residuals were zero, B is split in the same way, and all products are computed. A's slices are complete
// only if Algorithm 3 ended no row's split, because such a row may have a residual.
KINTSUGI_HOST_DEVICE constexpr SliceDepth depth_of(const SliceCounts& slice_counts, int max_slices,
                                                   bool fast) {
  if (slice_counts.exhausted > 0 && slice_counts.exhausted >= slice_counts.enough) {
    return {.a = slice_counts.exhausted,
            .b = max_slices,
            .fast = false,
            .a_is_complete = slice_counts.enough == 0};
  }
  return {.a = slice_counts.enough, .b = slice_counts.enough, .fast = fast};
}

// Sum of up to 2^count_bits products of magnitudes in 128 bits. The unit is 2^(126 - count_bits) times
// smaller than the largest product's bound. Bits below the unit are dropped: in all they are less than 2^(2
// count_bits - 124) of the largest product. more() is true if a dropped bit was 1. The sum is an integer, so
// its value does not depend on the order of the products.
class MagnitudeSum {
  __extension__ using Integer = unsigned __int128;

 public:
  // Exponent of a power of two above |x y|.
  KINTSUGI_HOST_DEVICE static constexpr std::int32_t top(const Residual& x, const Residual& y) {
    if (x.significand == 0 || y.significand == 0) return no_residual;
    return x.exponent + y.exponent + length(x) + length(y);
  }

  // `top` is the maximum of top(x, y) over the products.
  KINTSUGI_HOST_DEVICE constexpr MagnitudeSum(std::int32_t top, int count_bits)
      : unit_(top == no_residual ? 0 : top - (126 - count_bits)) {}

  KINTSUGI_HOST_DEVICE constexpr void add(const Residual& x, const Residual& y) {
    const Integer product = Integer{magnitude_of(x.significand)} * magnitude_of(y.significand);
    if (product == 0) return;  // the exponent of a zero has no meaning
    const int shift = x.exponent + y.exponent - unit_;
    if (shift >= 0) {
      sum_ += product << shift;
      return;
    }
    const Integer kept = shift > -128 ? product >> -shift : 0;
    more_ = more_ || (shift > -128 ? kept << -shift : 0) != product;
    sum_ += kept;
  }
  // Adds the sum of another MagnitudeSum with the same unit.
  KINTSUGI_HOST_DEVICE constexpr void add(std::uint64_t low, std::uint64_t high, bool more) {
    sum_ += Integer{high} << 64 | low;
    more_ = more_ || more;
  }
  KINTSUGI_HOST_DEVICE constexpr std::uint64_t low() const { return static_cast<std::uint64_t>(sum_); }
  KINTSUGI_HOST_DEVICE constexpr std::uint64_t high() const { return static_cast<std::uint64_t>(sum_ >> 64); }
  KINTSUGI_HOST_DEVICE constexpr bool more() const { return more_; }

  // Returns the sum, rounded once to double's significand.
  KINTSUGI_HOST_DEVICE Scaled scaled() const {
    const ExactNumber<2> sum = number();
    const int length = sum.magnitude.length();
    if (length == 0) return {};
    const double fraction =
        rounded<double>(ExactNumber<2>{.magnitude = sum.magnitude, .exponent = -length}, more_);
    return fraction == 1 ? Scaled{0.5, unit_ + length + 1} : Scaled{fraction, unit_ + length};
  }
  // Returns the sum, rounded once to a double; the largest double if it overflows.
  KINTSUGI_HOST_DEVICE double finite() const {
    return std::min(rounded<double>(number(), more_), std::numeric_limits<double>::max());
  }

 private:
  KINTSUGI_HOST_DEVICE static constexpr int length(const Residual& x) {
    return 64 - leading_zeros(magnitude_of(x.significand));
  }
  KINTSUGI_HOST_DEVICE constexpr ExactNumber<2> number() const {
    return {.magnitude = {{low(), high()}}, .exponent = unit_};
  }

  Integer sum_ = 0;
  std::int32_t unit_;
  bool more_ = false;
};

}  // namespace kintsugi::core
