// Acceptance test of residues that are scaled by norms. It decides from a few sums over each vector whether
// every element of the product keeps the contract.
//
// Units: elements of a vector are in units of 2^(e - norm_digits), where e is the vector's largest exponent.
// D_p and d_p bound |a_p| from above and from below: D_p are the digits of the norm, d_p is |a_p| clipped and
// rounded down. M and m are the means of D and d. g is the grid of the scaled vector's integers. r_i^2 is
// (mean of d_i^2) / m_i^2 - 1. S is the product of the scaled integers. Then
//
//   |AB - S|_ij  <=  sum over p of g_i |b_p| / 2 + g_j |a_p| / 2 + g_i g_j / 4
//                <=  k (g_i M_j / 2 + g_j M_i / 2 + g_i g_j / 4)
//   |A||B|_ij    >=  sum over p of d_ip d_pj  >=  k m_i m_j (1 - r_i r_j)
//                >=  k m_i m_j (1 - (r_i^2 + r_j^2) / 2)
//
// 1 - r_i r_j comes from the inequality of Cauchy and Schwarz for d_i - m_i and d_j - m_j. Vectors are
// clipped a little above their typical element, because larger elements would increase r more than m.
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
  std::int32_t typical = 0;  // mean of the exponents of finite non-zero elements, rounded down
  std::int32_t bits = 0;     // the least L with sum of D^2 <= 2^L
  double mean = 0;           // M
  double least = 0;          // m
  double spread = 0;         // r^2
};

// Scale factors of a vector's D and d. Elements are clipped two binades above the typical exponent. This
// proves the smallest contracts for uniform numbers, for normal deviates, and for such deviates times exp(phi
// randn) up to phi = 2. One binade more or less costs a factor of two.
struct NormScaling {
  TwoFactors digits{1, 1};
  std::int32_t below_largest = 0;  // binades below 2^largest at which |a_p| is clipped
  // Factor from units of D to units of d. The unit of d is norm_digits binades below the clip.
  double clipped = 1;
};

KINTSUGI_HOST_DEVICE inline NormScaling norm_scaling(const VectorRange& range, std::int32_t typical) {
  if ((range.flags & VectorRange::all_zero) != 0) return {};
  const std::int32_t below_largest = std::clamp(range.largest - typical - 2, -1, 500);
  return {two_factors(norm_digits - range.largest), below_largest, power_of_two(below_largest)};
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
KINTSUGI_HOST_DEVICE inline std::uint32_t floor(double x) {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__double2loint(__dadd_rz(x, 0x1p52)));
#else
  return static_cast<std::uint32_t>(x);
#endif
}

}  // namespace norm_detail

// Sums over the elements of a vector. They are integers, so the order of additions does not change them.
struct NormSums {
  std::uint64_t squares = 0;     // sum of D^2
  std::uint64_t magnitudes = 0;  // sum of D
  std::uint64_t clipped = 0;     // sum of d
  std::uint64_t clipped_squares = 0;

  // Adds an element. NaN and infinities count as zero.
  KINTSUGI_HOST_DEVICE void add(double x, const NormScaling& scaling) {
    const double magnitude = x - x == 0 ? std::fabs(x) : 0;
    const double scaled = magnitude * scaling.digits.first * scaling.digits.second;
    // A non-zero element far below 1 may underflow to zero when it is scaled.
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

// True if `deviation` is at most `coefficient` times the lower bound of |A||B|, both in units of k m_i m_j.
// The slack covers the rounding errors of both sides.
KINTSUGI_HOST_DEVICE inline bool is_proved(double deviation, double spread, double coefficient) {
  constexpr double rounding_slack = 1 + 0x1p-20;
  return deviation * rounding_slack <= coefficient * (1 - rounding_slack * spread);
}

}  // namespace norm_detail

// True if a vector fails the proof even beside another vector like itself. `top` is the exponent to which its
// largest magnitude is scaled. Few products of such a vector could be proved, so none of them counts as
// proved. The split then leaves out the slices of such a vector, because nothing multiplies them. The split
// and the selector kernel must decide alike, bit for bit. Both are compiled with -fmad=false, so no
// multiplication is fused with an addition.
KINTSUGI_HOST_DEVICE inline bool rules_proof_out(const VectorNorm& norm, std::int32_t top,
                                                 double coefficient) {
  const double grid = power_of_two(norm_digits - top) / norm.least;
  const double deviation = grid * (norm.mean / norm.least) + grid * grid / 4;
  return !norm_detail::is_proved(deviation, norm.spread, coefficient);
}

// Maxima over an operand's vectors, for each candidate's scales; the order of vectors does not change them.
// Two kinds of vectors are not added: vectors of zeros, because their products are exact, and vectors with
// special values, because their elements of C are computed apart.
template <int Candidates>
struct NormExtremes {
  double grid[Candidates] = {};  // g / m; infinite if a vector rules the proof out
  double mean = 1;               // M / m
  double spread = 0;

  // tops[r] is the exponent to which candidate r scales the vector's largest magnitude.
  KINTSUGI_HOST_DEVICE void add(const VectorNorm& norm, const std::int32_t (&tops)[Candidates],
                                double coefficient) {
    for (int r = 0; r < Candidates; ++r) {
      const double vector_grid = rules_proof_out(norm, tops[r], coefficient)
                                     ? std::numeric_limits<double>::infinity()
                                     : power_of_two(norm_digits - tops[r]) / norm.least;
      grid[r] = std::max(grid[r], vector_grid);
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

// True if |AB - S| <= coefficient |A||B| is proved for all pairs of vectors.
template <int Candidates>
KINTSUGI_HOST_DEVICE bool proves(const NormExtremes<Candidates>& a, const NormExtremes<Candidates>& b,
                                 int candidate, double coefficient) {
  const double deviation = (a.grid[candidate] * b.mean + b.grid[candidate] * a.mean) / 2 +
                           a.grid[candidate] * b.grid[candidate] / 4;
  return norm_detail::is_proved(deviation, (a.spread + b.spread) / 2, coefficient);
}

}  // namespace kintsugi::core
