// Algorithm 1 of dgemm-tc for one element. The element is a 53-bit integer, from which one slice after the
// other is subtracted, each rounded to a grid.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

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

}  // namespace kintsugi::core
