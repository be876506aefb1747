// Whether residues that are scaled by norms keep a contract in every element of a product, from a few sums
// over each vector.
//
// Elements of a vector in units of 2^(e - norm_digits), e its largest exponent: |a_p| <= D_p, the digits of
// its norm, and
// |a_p| >= d_p, which is |a_p| clipped and rounded down. With M and m the means of D and d, g the grid that
// the scaled vector's integers are on, and r_i^2 the mean of d_i^2 by m_i^2, less one:
//
//   |AB - S|_ij  <=  sum over p of g_i |b_p| / 2 + g_j |a_p| / 2 + g_i g_j / 4  <=  k (g_i M_j / 2 + g_j M_i
//   / 2 + g_i g_j / 4) |A||B|_ij    >=  sum over p of d_ip d_pj  >=  k m_i m_j (1 - r_i r_j)  >=  k m_i m_j
//   (1 - (r_i^2 + r_j^2) / 2)
//
// the latter by Cauchy and Schwarz for d_i - m_i and d_j - m_j. Vectors are clipped where that leaves them
// even, not far above their typical element: what is large there makes r larger than m.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "arith/host_device.hpp"
#include "arith/range.hpp"
#include "arith/residue/residue.hpp"
#include "arith/residue/residue_scale.hpp"

namespace kintsugi::core {

struct VectorNorm {
  std::int32_t typical = 0;  // mean of the exponents of finite elements other than zero, rounded down
  std::int32_t bits = 0;     // the least L with sum of D^2 <= 2^L
  double mean = 0;           // M
  double least = 0;          // m
  double spread = 0;         // r^2
};

// Scales of a vector's D and d. Two binades above the typical exponent products of uniform numbers, of normal
// deviates and of those with exp(phi randn) up to phi = 2 show most; a binade lower or higher costs a factor
// of two.
struct NormScaling {
  TwoFactors digits{1, 1};
  std::int32_t below_largest = 0;  // where |a_p| is clipped: so many binades below 2^largest
  double clipped = 1;              // from D's units to d's, which are as many digits below the clip
};

KINTSUGI_HOST_DEVICE inline NormScaling norm_scaling(const VectorRange& range, std::int32_t typical) {
  if ((range.flags & VectorRange::all_zero) != 0) return {};
  const std::int32_t below_largest = std::clamp(range.largest - typical - 2, -1, 500);
  return {two_factors(norm_digits - range.largest), below_largest, power_of_two(below_largest)};
}

namespace norm_detail {

// Of numbers from 0 to 2^31. On a device a sum beside 2^52, whose last bits are integers, is several times as
// quick as a conversion.
KINTSUGI_HOST_DEVICE inline std::uint32_t ceiling(double x) {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__double2loint(__dadd_ru(x, 0x1p52)));
#else
  return static_cast<std::uint32_t>(std::ceil(x));
#endif
}
KINTSUGI_HOST_DEVICE inline std::uint32_t floor(double x) {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__double2loint(__dadd_rz(x, 0x1p52)));
#else
  return static_cast<std::uint32_t>(x);
#endif
}

}  // namespace norm_detail

// Of integers, so that no order counts.
struct NormSums {
  std::uint64_t squares = 0;     // of D
  std::uint64_t magnitudes = 0;  // D
  std::uint64_t clipped = 0;     // d
  std::uint64_t clipped_squares = 0;

  // NaN and infinities count as zeros.
  KINTSUGI_HOST_DEVICE void add(double x, const NormScaling& scaling) {
    const double magnitude = x - x == 0 ? std::fabs(x) : 0;
    const double scaled = magnitude * scaling.digits.first * scaling.digits.second;
    // Far below 1 the scaled element itself may have become zero.
    const std::uint32_t above = std::max(norm_detail::ceiling(scaled), magnitude != 0 ? 1U : 0U);
    const std::uint32_t below =
        norm_detail::floor(std::min(scaled * scaling.clipped, power_of_two(norm_digits)));
    squares += static_cast<std::uint64_t>(above) * above;
    magnitudes += above;
    clipped += below;
    clipped_squares += static_cast<std::uint64_t>(below) * below;
  }
  KINTSUGI_HOST_DEVICE void add(const NormSums& other) {
    squares += other.squares;
    magnitudes += other.magnitudes;
    clipped += other.clipped;
    clipped_squares += other.clipped_squares;
  }

  KINTSUGI_HOST_DEVICE VectorNorm norm(std::int32_t typical, const NormScaling& scaling,
                                       std::int64_t length) const {
    const auto count = static_cast<double>(length);
    const auto sum = static_cast<double>(clipped);
    const double spread = static_cast<double>(clipped_squares) * count / (sum * sum) - 1;
    return {typical, bits_of_sum(squares), static_cast<double>(magnitudes) / count,
            sum / count * power_of_two(-scaling.below_largest),
            clipped == 0 ? std::numeric_limits<double>::infinity() : spread};
  }
};

namespace norm_detail {

// Whether deviations of so many k m_i m_j are below so much of |A||B|, with some room for what was rounded on
// the way.
KINTSUGI_HOST_DEVICE inline bool is_proved(double deviation, double spread, double coefficient) {
  constexpr double carelessness = 1 + 0x1p-20;
  return deviation * carelessness <= coefficient * (1 - carelessness * spread);
}

}  // namespace norm_detail

// Whether a vector whose largest magnitude is scaled to the exponent `top` is not even proved beside one that
// is like it. No product with it is taken for proved: most are not, and a split need not write what nobody
// will multiply. Split and choice must say the same, bit for bit: no multiplication and addition become one
// (-fmad=false).
KINTSUGI_HOST_DEVICE inline bool rules_proof_out(const VectorNorm& norm, std::int32_t top,
                                                 double coefficient) {
  const double grid = power_of_two(norm_digits - top) / norm.least;
  const double deviation = grid * (norm.mean / norm.least) + grid * grid / 4;
  return !norm_detail::is_proved(deviation, norm.spread, coefficient);
}

// The worst of an operand's vectors under some scales: maxima, so that no order counts. Of vectors of zeros,
// whose products are exact, and of those with special values, whose elements are none of these, nothing.
template <int Candidates>
struct NormExtremes {
  double grid[Candidates] = {};  // g / m, infinite where a vector rules the proof out
  double mean = 1;               // M / m
  double spread = 0;

  // tops[r]: the exponent that candidate r scales the vector's largest magnitude to.
  KINTSUGI_HOST_DEVICE void add(const VectorNorm& norm, const std::int32_t (&tops)[Candidates],
                                double coefficient) {
    for (int r = 0; r < Candidates; ++r) {
      const double own = rules_proof_out(norm, tops[r], coefficient)
                             ? std::numeric_limits<double>::infinity()
                             : power_of_two(norm_digits - tops[r]) / norm.least;
      grid[r] = std::max(grid[r], own);
    }
    mean = std::max(mean, norm.mean / norm.least);
    spread = std::max(spread, norm.spread);
  }
  KINTSUGI_HOST_DEVICE void add(const NormExtremes& other) {
    for (int r = 0; r < Candidates; ++r) grid[r] = std::max(grid[r], other.grid[r]);
    mean = std::max(mean, other.mean);
    spread = std::max(spread, other.spread);
  }
};

// Whether |AB - S| <= coefficient |A||B| for all pairs of vectors.
template <int Candidates>
KINTSUGI_HOST_DEVICE bool proves(const NormExtremes<Candidates>& a, const NormExtremes<Candidates>& b,
                                 int candidate, double coefficient) {
  const double deviation = (a.grid[candidate] * b.mean + b.grid[candidate] * a.mean) / 2 +
                           a.grid[candidate] * b.grid[candidate] / 4;
  return norm_detail::is_proved(deviation, (a.spread + b.spread) / 2, coefficient);
}

}  // namespace kintsugi::core
