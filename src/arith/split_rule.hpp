// The split of one element: a sum of scaled slices.
#pragma once

#include <cstdint>

#include "arith/host_device.hpp"
#include "arith/residue/complex_residue.hpp"
#include "arith/residue/residue.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

enum class SplitKind : std::uint8_t {
  // Each slice is the rounded residual of those before it: high and low parts of x.
  rounded_residuals,
  // Digits of a grid (integer formats): x is rounded to the grid once, to nearest, and written in balanced
  // digits of residual_exponent bits, which use all values of an integer format: -128...127 for 8 bits.
  grid_digits,
  // The magnitude rounded down: one slice, for lower bounds.
  magnitude,
  // The magnitude rounded up, at least 1 for a non-zero element: one slice, for upper bounds.
  magnitude_above,
  // Residues of the nearest integer modulo the first `slices` moduli (arith/residue/residue.hpp).
  residues,
  // Integers; the largest residual of a vector decides the grid of each of its slices (split/successive/).
  successive,
  // Segments of 7 bits with one exponent per tile of vectors and inner indices: split/tiles.hpp.
  tiles,
};

// Quantity that decides the scales of residues, so that |sum of a'_ip b'_pj| <= 2^sum_bits for the scaled
// integers a' and b' (arith/residue/residue_scale.hpp).
enum class ScaleRule : std::uint8_t {
  exponent,  // the largest exponent of each vector and k
  norm,      // norms of vectors, by Cauchy and Schwarz
  product,   // an int8 product of magnitudes rounded up
};

constexpr const char* scale_rule_name(ScaleRule rule) {
  return rule == ScaleRule::exponent ? "exponent" : rule == ScaleRule::norm ? "norm" : "product";
}

// x * 2^scale = sum over s of slice_s * 2^(-s * residual_exponent) + error.
//   rounded_residuals: slice_0 = round(x * 2^scale), r_1 = (x * 2^scale - slice_0) * 2^residual_exponent,
//     slice_1 = round(r_1), ... All steps but the roundings are exact in double: the residual of a rounding
//     has no more bits than x.
//   grid_digits: round(x * 2^(scale + (slices - 1) * residual_exponent)) in digits
// This holds for rounded_residuals and grid_digits. The other kinds are:
//   residues: slice_s = round(x * 2^scale) mod moduli[s]
//   successive: |slice_s| <= 2^residual_exponent, its grid decided by the whole vector; split_element() below
//     does not split it, split/successive/ does
//   tiles: x = sum over s of slice_s 2^(p - 6 - 7 s) + error with the tile's exponent p; split_element() does
//     not split it, split/tiles.cpp does
struct SplitRule {
  const Format* format;
  int slices;
  Rounding first_rounding;
  Rounding residual_rounding;
  int residual_exponent;
  // Each vector along k (a row of op(A), a column of op(B)) is multiplied by the power of two that brings its
  // largest magnitude into [2^top_exponent, 2^(top_exponent + 1)), or higher where `scales` allows it. If
  // scale_vectors is false, every scale is 0.
  bool scale_vectors;
  int top_exponent;
  SplitKind kind = SplitKind::rounded_residuals;
  // residues of complex elements: the moduli of the slices. Empty for real elements, also for those of an
  // embedding (base/embedding.hpp).
  ComplexBasis complex_basis{};
  // residues: sums are at most 2^sum_bits.
  ScaleRule scales = ScaleRule::exponent;
  int sum_bits = 0;
  // successive: slices are rounded as fl((x + sigma) - sigma), sigma a power of two. Doubles above sigma are
  // twice as far apart as those below, so that positive residuals are rounded to a grid twice as coarse as
  // that of negative ones.
  bool sigma_grid = false;
  // tiles: vectors and inner indices of a tile, and the mean number of binades below the tile's largest
  // element from which it fails Eq. 9 (arith/tile_exponent.hpp).
  int tile_vectors = 0;
  int tile_depth = 0;
  int mean_depth_limit = 0;

  // log2 of a bound of the integers whose residues are slices, in the notation of residue_scale.hpp. By norm:
  // an element is at most its vector's norm, at most 2^(sum_bits / 2), rounded up to a whole exponent. By
  // product: an element is at most D 2^t with D <= 2^6 and t <= floor(sum_bits / 2).
  KINTSUGI_HOST_DEVICE constexpr int integer_bits() const {
    if (scales == ScaleRule::norm) return (sum_bits + 1) / 2;
    if (scales == ScaleRule::product) return sum_bits / 2 + 6;
    return top_exponent + 1;
  }

  // successive: each slice lowers the bound of the residuals, a power of two, by this number of bits.
  KINTSUGI_HOST_DEVICE constexpr int successive_gain() const {
    return residual_exponent + (sigma_grid ? 0 : 1);
  }

  friend constexpr bool operator==(const SplitRule&, const SplitRule&) = default;
};

template <class Store>
KINTSUGI_HOST_DEVICE constexpr void split_into_residuals(const SplitRule& rule, double x, int scale,
                                                         Store&& store) {
  double residual = times_power_of_two(x, scale);
  for (int s = 0; s < rule.slices; ++s) {
    const Rounding rounding = s == 0 ? rule.first_rounding : rule.residual_rounding;
    const std::uint64_t pattern = encode(*rule.format, residual, rounding);
    store(s, pattern);
    residual = (residual - decode(*rule.format, pattern)) * power_of_two(rule.residual_exponent);
  }
}

// Computes the last digit first, with a carry to the next. The grid integer is significand 2^shift, of any
// length, so that words of 52 bits need no wider arithmetic. A negative number is split by its magnitude,
// whose digits are 1 - half_base ... half_base, and every digit is then negated.
template <class Store>
KINTSUGI_HOST_DEVICE constexpr void split_into_digits(const SplitRule& rule, double x, int scale,
                                                      Store&& store) {
  using namespace format_detail;
  const int bits = rule.residual_exponent;
  const Parts parts = take_apart(x);
  std::uint64_t significand = parts.significand;
  int shift = parts.exponent - 52 + scale + (rule.slices - 1) * bits;
  if (shift < 0) {
    significand = shift_right(significand, -shift, Rounding::nearest_even);
    shift = 0;
  }
  const auto bits_from = [&](int position) -> std::uint64_t {
    const int right = position - shift;
    if (right >= 64 || right <= -64) return 0;
    return right >= 0 ? significand >> right : significand << -right;
  };
  const auto half_base = std::int64_t{1} << (bits - 1);
  const std::int64_t largest = parts.negative ? half_base : half_base - 1;
  std::int64_t carry = 0;
  for (int s = rule.slices - 1; s >= 0; --s) {
    const std::uint64_t raw = bits_from((rule.slices - 1 - s) * bits);
    std::int64_t digit = static_cast<std::int64_t>(s == 0 ? raw : raw & all_ones(bits)) + carry;
    carry = s > 0 && digit > largest ? 1 : 0;
    digit -= carry * 2 * half_base;
    store(s, static_cast<std::uint64_t>(parts.negative ? -digit : digit) &
                 all_ones(8 * rule.format->storage_bytes));
  }
}

// Returns the least integer that is at least |x| 2^scale, below 2^31; 1 where |x| 2^scale is too small for a
// double.
KINTSUGI_HOST_DEVICE constexpr std::uint64_t magnitude_above(double x, int scale) {
  const double scaled = times_power_of_two(x < 0 ? -x : x, scale);
  const auto truncated = static_cast<std::uint64_t>(scaled);
  return truncated + (static_cast<double>(truncated) < scaled || (truncated == 0 && x != 0) ? 1 : 0);
}

// Calls store(s, pattern) for every slice of the finite value x.
template <class Store>
KINTSUGI_HOST_DEVICE constexpr void split_element(const SplitRule& rule, double x, int scale, Store&& store) {
  switch (rule.kind) {
    case SplitKind::rounded_residuals: return split_into_residuals(rule, x, scale, store);
    case SplitKind::grid_digits: return split_into_digits(rule, x, scale, store);
    case SplitKind::magnitude:
      return store(0, static_cast<std::uint64_t>(times_power_of_two(x < 0 ? -x : x, scale)));
    case SplitKind::magnitude_above: return store(0, magnitude_above(x, scale));
    case SplitKind::residues: return split_into_residues(rule.slices, rule.integer_bits(), x, scale, store);
    case SplitKind::successive:  // loops over vectors and tiles split these two
    case SplitKind::tiles: return;
  }
}

}  // namespace kintsugi::core
