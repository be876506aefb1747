// Acceptance test of residues that are scaled by norms. It decides from a few sums over each vector whether
// every element of the product keeps the contract.
//
// Elements of a vector are in units of 2^(e - norm_digits), where e is the vector's largest exponent. D_p are
// the digits of the norm, so |a_p| <= D_p. All |a_p| are below 2^norm_top_binade. M is the mean of D, g is
// the grid of the scaled vector's integers, and S is the product of the scaled integers:
//
//   |AB - S|_ij  <=  sum over p of g_i |b_p| / 2 + g_j |a_p| / 2 + g_i g_j / 4
//                <=  k (g_i M_j / 2 + g_j M_i / 2 + g_i g_j / 4)
//
// The depth of a vector is the sum of log2(2^norm_top_binade / |a_p|) over those of its elements that count.
// Zeros do not count, nor do elements so small that they underflow when they are scaled. Let n be the number
// of inner indices at which the elements of both vectors count. The inequality of arithmetic and geometric
// means gives
//
//   |A||B|_ij    >=  n 2^(2 norm_top_binade - (depth_i + depth_j) / n),
//
// An element that meets a zero only adds to its vector's depth. The right side grows with n, so a smaller
// number may stand for n: the sum of both operands' least numbers of elements, less k. For lognormal elements
// no bound from sums over single vectors is better, since the vectors may meet in the opposite order.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "arith/host_device.hpp"
#include "arith/range.hpp"
#include "arith/residue/residue.hpp"
#include "arith/residue/residue_scale.hpp"

namespace kintsugi::core {

// Elements are smaller than 2^norm_top_binade units.
inline constexpr int norm_top_binade = norm_digits + 1;

struct VectorNorm {
  std::int32_t elements = 0;  // number of elements that count in the depth
  std::int32_t bits = 0;      // the least L with sum of D^2 <= 2^L
  double mean = 0;            // M
  double mean_exponent = 0;   // upper bound of log2(M)
  double depth = 0;           // upper bound of the depth
};

// Scale factors of a vector's D.
KINTSUGI_HOST_DEVICE inline TwoFactors norm_scaling(const VectorRange& range) {
  if ((range.flags & VectorRange::all_zero) != 0) return {1, 1};
  return two_factors(norm_digits - range.largest);
}

namespace norm_detail {

// Rounds numbers from 0 to 2^31 up. Device code adds 2^52, at which a double's last bit is worth 1: several
// times faster than a conversion.
KINTSUGI_HOST_DEVICE inline std::uint32_t ceiling(double x) {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__double2loint(__dadd_ru(x, 0x1p52)));
#else
  return static_cast<std::uint32_t>(std::ceil(x));
#endif
}
// Upper half of a number's bits: sign, biased exponent and 20 bits of the significand.
KINTSUGI_HOST_DEVICE inline std::uint32_t upper_half(double x) {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__double2hiint(x));
#else
  return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(x) >> 32);
#endif
}

// Least upper_half() of a normal number.
inline constexpr std::uint32_t upper_half_of_normal = 1U << 20;

// Lower bound of log2 of a positive normal number, by a straight line in each binade. `upper` is the upper
// half of the number's bits, or the sum of `count` such halves.
KINTSUGI_HOST_DEVICE inline double logarithm_below(std::uint64_t upper, double count) {
  return static_cast<double>(upper) * 0x1p-20 - 1023 * count;
}
// Upper bound of the difference between log2 and logarithm_below(), which also drops bits of the significand.
inline constexpr double logarithm_error = 0.08608;

// Upper bound of 2^x, too large by at most 2^-15 of it. The bits are the same on all machines.
KINTSUGI_HOST_DEVICE inline double power_above(double x) {
  constexpr double most = 1000;
  if (!(x < most)) return std::numeric_limits<double>::infinity();
  const double whole = std::floor(x < -most ? -most : x);
  const double y = (x < -most ? 0 : x - whole) * 0.6931471805599454;
  constexpr double inverses[] = {1.0 / 8, 1.0 / 7, 1.0 / 6, 1.0 / 5, 1.0 / 4, 1.0 / 3, 1.0 / 2, 1};
  double power = 1;  // exp(y) by its series, whose rest is less than 2^-17
  for (const double inverse : inverses) power = 1 + power * y * inverse;
  return power * (1 + 0x1p-16) * power_of_two(static_cast<int>(whole));
}

}  // namespace norm_detail

// Sums over the elements of a vector. They are integers, so the order of additions does not change them.
struct NormSums {
  std::uint64_t squares = 0;     // sum of D^2
  std::uint64_t magnitudes = 0;  // sum of D
  std::uint64_t logarithms = 0;  // sum of the upper halves of the elements' bits
  std::uint64_t elements = 0;    // number of these elements

  // Adds an element. NaN and infinities count as zeros.
  KINTSUGI_HOST_DEVICE void add(double x, const TwoFactors& scaling) {
    add_finite(x - x == 0 ? x : 0, scaling);
  }
  KINTSUGI_HOST_DEVICE void add_finite(double x, const TwoFactors& scaling) {
    const double magnitude = std::fabs(x);
    const double scaled = magnitude * scaling.first * scaling.second;
    // A non-zero element far below 1 may underflow to zero when it is scaled.
    const std::uint32_t above = std::max(norm_detail::ceiling(scaled), magnitude != 0 ? 1U : 0U);
    const std::uint32_t upper = norm_detail::upper_half(scaled);
    const bool is_normal = upper >= norm_detail::upper_half_of_normal;
    squares += static_cast<std::uint64_t>(above) * above;
    magnitudes += above;
    logarithms += is_normal ? upper : 0U;
    elements += is_normal ? 1U : 0U;
  }
  KINTSUGI_HOST_DEVICE void add(const NormSums& other) {
    squares += other.squares;
    magnitudes += other.magnitudes;
    logarithms += other.logarithms;
    elements += other.elements;
  }

  KINTSUGI_HOST_DEVICE VectorNorm norm(std::int64_t length) const {
    constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max();
    const auto count = static_cast<double>(elements);
    const double mean = static_cast<double>(magnitudes) / static_cast<double>(length);
    const double mean_exponent = norm_detail::logarithm_below(norm_detail::upper_half(mean), 1);
    const double depth = norm_top_binade * count - norm_detail::logarithm_below(logarithms, count);
    return {static_cast<std::int32_t>(std::min(elements, most)), bits_of_sum(squares), mean,
            mean_exponent + norm_detail::logarithm_error, depth};
  }
};

// Number of inner indices of a product, and a lower bound of the number of those at which the elements of any
// two vectors count in the depths.
struct NormTerms {
  std::int64_t length = 0;
  std::int64_t common = 0;

  // `least_a` and `least_b` are the least numbers of counted elements of a vector of each operand.
  KINTSUGI_HOST_DEVICE static constexpr NormTerms of(std::int64_t length, std::int64_t least_a,
                                                     std::int64_t least_b) {
    return {length, least_a + least_b - length};
  }
};

namespace norm_detail {

// log2 of the geometric mean by which an element of the vector enters the lower bound of |A||B|, in units.
KINTSUGI_HOST_DEVICE inline double mean_bound(const VectorNorm& norm, const NormTerms& terms) {
  return norm_top_binade - norm.depth / static_cast<double>(terms.common);
}

// log2 of the largest grid g of a vector beside a vector like itself for which the deviation is at most four
// times what is proved; -infinity if there is none. A grid of at most M / 16 adds less than 2^0.023 to the
// deviation by its square. `known_bound` is the vector's mean bound with `known_terms`. Neither division is
// needed for a vector without zeros in a product without zeros.
KINTSUGI_HOST_DEVICE inline double largest_grid(const VectorNorm& norm, std::int64_t length,
                                                double coefficient, const NormTerms& known_terms,
                                                double known_bound) {
  const NormTerms terms = NormTerms::of(length, norm.elements, norm.elements);
  if (terms.common <= 0) return -std::numeric_limits<double>::infinity();
  const double share =
      terms.common == length ? 1 : static_cast<double>(terms.common) / static_cast<double>(length);
  const double bound = terms.common == known_terms.common ? known_bound : mean_bound(norm, terms);
  constexpr double margin = 2;
  const double limit = logarithm_below(upper_half(coefficient * share), 1) + (margin - 0.023);
  return std::min(limit + 2 * bound - norm.mean_exponent, norm.mean_exponent - 4.1);
}
KINTSUGI_HOST_DEVICE inline double largest_grid(const VectorNorm& norm, std::int64_t length,
                                                double coefficient) {
  const NormTerms terms = NormTerms::of(length, norm.elements, norm.elements);
  return largest_grid(norm, length, coefficient, terms, mean_bound(norm, terms));
}

}  // namespace norm_detail

// True if a vector fails the proof by more than a factor of four even beside another vector like itself.
// `top` is the exponent to which its largest magnitude is scaled. Few products of such a vector could be
// proved, so none of them counts as proved. The split then leaves out the slices of such a vector, because
// nothing multiplies them. A single large element raises g and M alike, so a vector that fails by less may
// well be proved beside other vectors. The split and the selector kernel must decide alike, bit for bit.
// Both are compiled with -fmad=false, so no multiplication is fused with an addition.
KINTSUGI_HOST_DEVICE inline bool rules_proof_out(const VectorNorm& norm, std::int32_t top,
                                                 std::int64_t length, double coefficient) {
  return norm_digits - top > norm_detail::largest_grid(norm, length, coefficient);
}

// Logarithms in units of 2^-16, rounded up. Integers are combined by single instructions.
struct LogarithmAbove {
  static constexpr std::int32_t none = std::numeric_limits<std::int32_t>::min();      // -infinity
  static constexpr std::int32_t infinite = std::numeric_limits<std::int32_t>::max();  // infinity
  static constexpr std::int32_t unit_exponent = 16;
  static constexpr std::int32_t most = 1 << 14;  // larger magnitudes of a logarithm are not counted

  // Least number of units that is at least x.
  KINTSUGI_HOST_DEVICE static std::int32_t of(double x) {
    if (!(x < most)) return infinite;
    return static_cast<std::int32_t>(std::ceil(std::max<double>(x, -most) * (1 << unit_exponent)));
  }
  KINTSUGI_HOST_DEVICE static double value(std::int32_t units) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (units == none) return -infinity;
    return units == infinite ? infinity : static_cast<double>(units) / (1 << unit_exponent);
  }
};

// Maxima over an operand's vectors, as logarithms, for each candidate's scales. The order of vectors does not
// change them. Two kinds of vectors are not added: vectors of zeros, because their products are exact, and
// vectors with special values, because their elements of C are computed apart.
template <int Candidates>
struct NormExtremes {
  std::int32_t grid[Candidates];  // g by the mean bound; infinite where a vector rules the proof out
  std::int32_t mean = LogarithmAbove::none;  // M by the mean bound

  KINTSUGI_HOST_DEVICE NormExtremes() {
    for (std::int32_t& each : grid) each = LogarithmAbove::none;
  }

  // tops[r] is the exponent to which candidate r scales the vector's largest magnitude. `terms` is the
  // product's.
  KINTSUGI_HOST_DEVICE void add(const VectorNorm& norm, const std::int32_t (&tops)[Candidates],
                                const NormTerms& terms, double coefficient) {
    const double bound = norm_detail::mean_bound(norm, terms);
    const double largest = norm_detail::largest_grid(norm, terms.length, coefficient, terms, bound);
    constexpr double most = LogarithmAbove::most;
    const auto largest_grid = static_cast<std::int32_t>(std::floor(std::max(-most, std::min(largest, most))));
    const std::int32_t above_bound = LogarithmAbove::of(-bound);
    for (int r = 0; r < Candidates; ++r) {
      const std::int32_t vector_grid = norm_digits - tops[r];
      const bool is_infinite = vector_grid > largest_grid || above_bound == LogarithmAbove::infinite;
      const std::int32_t units = is_infinite
                                     ? LogarithmAbove::infinite
                                     : vector_grid * (1 << LogarithmAbove::unit_exponent) + above_bound;
      grid[r] = std::max(grid[r], units);
    }
    mean = std::max(mean, LogarithmAbove::of(norm.mean_exponent - bound));
  }
  KINTSUGI_HOST_DEVICE void add(const NormExtremes& other) {
    for (int r = 0; r < Candidates; ++r) grid[r] = std::max(grid[r], other.grid[r]);
    mean = std::max(mean, other.mean);
  }
};

// True if |AB - S| <= coefficient |A||B| for all pairs of vectors. The comparison leaves room for rounding
// errors.
template <int Candidates>
KINTSUGI_HOST_DEVICE bool proves(const NormExtremes<Candidates>& a, const NormExtremes<Candidates>& b,
                                 int candidate, const NormTerms& terms, double coefficient) {
  if (terms.common <= 0) return false;
  const double grid_a = LogarithmAbove::value(a.grid[candidate]);
  const double grid_b = LogarithmAbove::value(b.grid[candidate]);
  const double deviation = (norm_detail::power_above(grid_a + LogarithmAbove::value(b.mean)) +
                            norm_detail::power_above(grid_b + LogarithmAbove::value(a.mean))) /
                               2 +
                           norm_detail::power_above(grid_a + grid_b) / 4;
  return deviation * static_cast<double>(terms.length) <=
         coefficient * static_cast<double>(terms.common) * (1 - 0x1p-20);
}

}  // namespace kintsugi::core
