// The split of one element: a sum of scaled slices.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arith/host_device.hpp"
#include "arith/residue/complex_residue.hpp"
#include "arith/residue/residue.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

enum class SplitKind : std::uint8_t {
  // Each slice is the rounded residual that the slices before it leave: high and low parts of x.
  rounded_residuals,
  // x is rounded once, to the nearest multiple of the grid, and written in balanced digits of
  // residual_exponent bits, a slice each. For integer formats: digits take all values of the format, -128 ...
  // 127 for 8 bits.
  grid_digits,
  // One slice: the magnitude rounded down, for lower bounds.
  magnitude,
  // One slice: the magnitude rounded up, at least 1 for a non-zero element; for upper bounds.
  magnitude_above,
  // Residues of the nearest integer modulo the first `slices` moduli (arith/residue/residue.hpp).
  residues,
  // Integers. Each slice has a grid, which the largest residual of the vector decides (split/successive/).
  successive,
  // Segments of 7 bits with one exponent per tile of vectors and inner indices: split/slices.hpp.
  tiles,
  // rounded_residuals of unscaled elements, of which products lose nothing (arith/direct_arithmetic.hpp).
  // Products split these slices themselves.
  direct_residuals,
};

// Quantity from which the scales of residues follow. With these scales |sum of a'_ip b'_pj| <= 2^sum_bits for
// the scaled integers a' and b' (arith/residue/residue_scale.hpp).
enum class ScaleRule : std::uint8_t {
  exponent,  // the largest exponent of each vector and k
  norm,      // norms of vectors, by Cauchy and Schwarz
  product,   // an int8 product of magnitudes rounded up
};

constexpr const char* scale_rule_name(ScaleRule rule) {
  return rule == ScaleRule::exponent ? "exponent" : rule == ScaleRule::norm ? "norm" : "product";
}

// Meaning of the slices, by kind; `e` stands for residual_exponent.
//   rounded_residuals, grid_digits: x * 2^scale = sum over s of slice_s * 2^(-s e) + error
//     rounded_residuals: slice_0 = round(x * 2^scale), slice_1 = round(r_1) with
//       r_1 = (x * 2^scale - slice_0) * 2^e, and so on. The residual of a rounding has no more bits than x.
//       So all steps but the roundings are exact in double.
//     grid_digits: the slices are the digits of round(x * 2^(scale + (slices - 1) e)).
//   residues: slice_s = round(x * 2^scale) mod moduli[s]
//   successive: |slice_s| <= 2^e. split/successive/ splits whole vectors, split_element() does nothing.
//   tiles: x = sum over s of slice_s 2^(p - 6 - 7 s) + error, where p is the tile's exponent.
//     split/tiles.cpp splits whole tiles, split_element() does nothing.
//   direct_residuals: as rounded_residuals, by split_into_residuals(); split_element() does nothing.
struct SplitRule {
  const Format* format;
  int slices;
  Rounding first_rounding;
  Rounding residual_rounding;
  int residual_exponent;
  // If true, each vector is multiplied by a power of two, its scale. It brings the vector's largest magnitude
  // into [2^top_exponent, 2^(top_exponent + 1)), or higher if `scales` allows a larger one. If false, every
  // scale is 1.
  bool scale_vectors;
  int top_exponent;
  SplitKind kind = SplitKind::rounded_residuals;
  // residues of complex elements: the moduli of the slices. Empty for real elements, and for the real
  // elements of an embedding (base/embedding.hpp).
  ComplexBasis complex_basis{};
  // residues: the rule of the scales, and the bound 2^sum_bits of sums.
  ScaleRule scales = ScaleRule::exponent;
  int sum_bits = 0;
  // successive: slices are rounded as fl((x + sigma) - sigma), where sigma is a power of two. Doubles above
  // sigma are twice as far apart as doubles below it, so positive residuals are rounded to a grid that is
  // twice as coarse as the grid of negative ones.
  bool sigma_grid = false;
  // tiles: size of a tile in vectors and in inner indices, and the limit of Eq. 9. A tile fails Eq. 9 if its
  // elements lie on average more than mean_depth_limit binades below the largest one
  // (arith/tile_arithmetic.hpp).
  int tile_vectors = 0;
  int tile_depth = 0;
  int mean_depth_limit = 0;

  // residues: log2 of a bound of the integers whose residues are the slices. Notation as in
  // residue_scale.hpp. By norm: an element is at most its vector's norm, which is at most 2^(sum_bits / 2).
  // By product: an element is at most D 2^t with D <= 2^6 and t <= floor(sum_bits / 2).
  KINTSUGI_HOST_DEVICE constexpr int integer_bits() const {
    if (scales == ScaleRule::norm) return (sum_bits + 1) / 2;
    if (scales == ScaleRule::product) return sum_bits / 2 + 6;
    return top_exponent + 1;
  }

  // successive: number of bits by which each slice lowers the bound of the residuals.
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

// The digits are computed from the last one on, with a carry to the next higher one. The grid integer is
// significand * 2^shift. It is never formed, since it may be longer than 64 bits (52-bit words); digits are
// read from the significand. A negative number's magnitude is split, into digits 1 - half_base ... half_base,
// and each digit is then negated.
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

// Returns the least integer that is not below |x| 2^scale, and 1 if |x| 2^scale underflows. |x| 2^scale must
// be less than 2^31.
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
    case SplitKind::successive:  // loops over vectors and tiles split these
    case SplitKind::tiles:
    case SplitKind::direct_residuals: return;
  }
}

// Largest scale of residuals of unscaled vectors, from the operands' largest exponent alone. The alignment
// lets device code write both members in one access.
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
// largest one. The exponent is that of h2sgemm, Eq. 6, less one (schemes/fp32_unscaled.hpp gives the reason).
// The first slice is rounded to nearest, which leaves residuals of at most 2^(largest - p). If `largest` is
// the format's largest exponent, rounding might give infinity; so the first slice is truncated, and residuals
// are below 2^(largest - p + 1).
KINTSUGI_HOST_DEVICE constexpr ResidualFit fit_residual(const Format& format, int requested, int largest) {
  const bool truncates = largest >= format.max_exponent;
  const int allowed = format.max_exponent + format.significand_bits - largest - (truncates ? 1 : 0);
  return {std::min({requested, allowed, max_residual_exponent}),
          truncates ? Rounding::towards_zero : Rounding::nearest_even};
}

}  // namespace kintsugi::core
