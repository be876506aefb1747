// Algorithm 1 of dgemm-tc for one element, and the numbers of slices by its Algorithm 3. The element is a
// 53-bit integer, from which one slice after the other is subtracted, each rounded to a grid.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "arith/exact/exact_rounding.hpp"
#include "arith/exact/exact_sum.hpp"
#include "arith/host_device.hpp"
#include "base/bits.hpp"

namespace kintsugi::core {

// Residual of an element after some slices were subtracted: significand * 2^exponent.
struct Residual {
  std::int64_t significand;
  std::int32_t exponent;
};

// Value of top_of() for a zero residual, and top of a vector whose residuals are all zero.
inline constexpr std::int32_t no_residual = std::numeric_limits<std::int32_t>::min();

KINTSUGI_HOST_DEVICE constexpr Residual residual_of(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const int field = static_cast<int>(bits >> 52) & 0x7ff;
  const std::uint64_t implicit = field != 0 ? std::uint64_t{1} << 52 : 0;
  const auto magnitude = static_cast<std::int64_t>((bits & ((std::uint64_t{1} << 52) - 1)) | implicit);
  return {(bits >> 63) != 0 ? -magnitude : magnitude, (field > 1 ? field : 1) - 1075};
}

KINTSUGI_HOST_DEVICE constexpr std::uint64_t magnitude_of(std::int64_t integer) {
  return static_cast<std::uint64_t>(integer < 0 ? -integer : integer);
}

// ceil(log2 |residual|); no_residual if the residual is zero.
KINTSUGI_HOST_DEVICE constexpr std::int32_t top_of(const Residual& residual) {
  if (residual.significand == 0) return no_residual;
  return residual.exponent + 64 - leading_zeros(magnitude_of(residual.significand) - 1);
}

// log2 of the grid of a vector's next slice of `bits` bits, where `top` is the largest top_of() of the
// vector's residuals. The grid is no finer than 2^-1074, the last bit that a double can have.
KINTSUGI_HOST_DEVICE constexpr std::int32_t grid_of(std::int32_t top, int bits) {
  constexpr std::int32_t smallest = -1074;
  return top - bits > smallest ? top - bits : smallest;
}

// Returns RN(residual / 2^grid), ties to even, and subtracts this multiple of the grid from the residual.
KINTSUGI_HOST_DEVICE constexpr std::int64_t take_integer(Residual& residual, int grid) {
  if (residual.significand == 0) return 0;  // the exponent of a zero residual has no meaning
  const int shift = grid - residual.exponent;
  if (shift <= 0) {  // the whole residual lies on the grid, and fits the slice's bits
    const std::int64_t integer = residual.significand << -shift;
    residual.significand = 0;
    return integer;
  }
  if (shift > 54) return 0;  // the residual, which has at most 53 bits, is below half the grid
  const std::int64_t floor = residual.significand >> shift;
  // Half of the grid, or one unit less if `floor` is even: adding it before the shift rounds ties to even.
  const std::int64_t up_to_half = (std::int64_t{1} << (shift - 1)) - 1 + (floor & 1);
  const std::int64_t integer = (residual.significand + up_to_half) >> shift;
  residual.significand -= integer << shift;
  return integer;
}

// Returns fl((residual + sigma) - sigma) / 2^grid in FP64, and subtracts this multiple of the grid from the
// residual; sigma = 2^(top + 53 - bits), grid = grid_of(top, bits). Doubles below sigma are 2^grid apart,
// doubles above it twice as far: so positive residuals are rounded to even integers. No grid is finer than
// 2^-1074 (grid_of()).
KINTSUGI_HOST_DEVICE constexpr std::int64_t take_integer_by_sigma(Residual& residual, std::int32_t top,
                                                                  int bits) {
  const std::int32_t grid = grid_of(top, bits);
  if (residual.significand <= 0) return take_integer(residual, grid);
  const std::int32_t coarse_grid = grid_of(top, bits - 1);
  return take_integer(residual, coarse_grid) * (std::int64_t{1} << (coarse_grid - grid));
}

// Decisions on the number of slices, by Algorithm 3 of dgemm-tc.

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
