// Frequency of underflow of an fp16 split's residual: h2sgemm section 3.1.2, its equations and a simulation.
//
// An fp32 number of exponent E is split into its fp16 rounding and the residual r. With a uniform significand
// r is a multiple of 2^(E - 23) and at most 2^(E - 11). N counts the leading zeros of the twelve bits below
// that: |r| is in [2^(E - 12 - N), 2^(E - 11 - N)). N = -1 is the tie, |r| = 2^(E - 11); r = 0 counts as
// N = 12. The high part is either truncated (T) or rounded up (R). All this is exact if the high part is a
// normal number: E from -14 on.
#pragma once

#include <cstdint>

#include "tools/measure/generators/random.hpp"
#include "tools/measure/retained_bits.hpp"

namespace kintsugi::lab {

// Returns a float +-[1, 2) 2^exponent, each significand and sign equally likely; exponents of normal numbers.
float random_of_exponent(measure::Random& random, int exponent);

enum class HighPart : std::uint8_t { truncated, rounded_up };

// Returns Eq. 3, P(N = n, X). The sum over both X and n = -1 ... 12 is 1.
double leading_zeros_probability(int n, HighPart high);

// Return Eq. 5 for a residual multiplied by 2^residual_exponent (sb; the paper's equations have 0). The first
// is the probability of Eq. 4's "underflow": the residual is below fp16's smallest subnormal, 2^-24. The
// second is P_(u+gu): the residual is below the smallest normal number, 2^-14. Both count r = 0 if N = 12
// satisfies Eq. 4, although nothing is lost then.
double underflow_probability(int exponent, int residual_exponent = 0);
double underflow_or_gradual_probability(int exponent, int residual_exponent = 0);

// Shares of random numbers of one exponent.
struct UnderflowShares {
  // Numbers that satisfy Eq. 4's conditions on N, which is 12 if r = 0, as in the equations.
  double underflow = 0;
  double underflow_or_gradual = 0;
  // Numbers for which Eq. 4 differs from the result. fp16 rounds to nearest, so residuals between 2^-25 and
  // 2^-24 become the smallest subnormal and are not lost: `lost` is at most `underflow`.
  double lost = 0;           // r is not 0 but the low slice is
  double zero_residual = 0;  // r = 0: a low slice of 0 is right
  double overflowed = 0;     // the high part is infinite (E = 15 only); in no other share
};

// Simulates the split for exponents -126...15; from 16 on every high part is infinite. Throws core::Error
// (invalid_argument).
UnderflowShares simulate_underflow(int exponent, int residual_exponent, std::int64_t samples,
                                   std::uint64_t seed);

// Retained bits over fp32 numbers of one exponent with random significands and signs, split without a
// vector's scale: h2sgemm Fig. 2(b).
struct RetainedAtExponent {
  int fewest = 0;
  int fewest_places = 0;
  double mean = 0;
};
RetainedAtExponent retained_at_exponent(const measure::SplitDescription& split, int exponent,
                                        std::int64_t samples, std::uint64_t seed);

}  // namespace kintsugi::lab
