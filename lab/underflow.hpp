// How often the residual of an fp16 split underflows: h2sgemm section 3.1.2, its equations and a simulation.
//
// An fp32 number of exponent E is split into its fp16 rounding and the rest, r. With a uniform significand r
// is a multiple of 2^(E - 23) and at most 2^(E - 11). N counts the leading zeros of the twelve bits below
// that: |r| is in [2^(E - 12 - N), 2^(E - 11 - N)). N = -1 is the tie, |r| = 2^(E - 11); r = 0 counts as N =
// 12. The high part is either truncated (T) or rounded up (R). All this is exact while the high part is a
// normal number: E from -14 on.
#pragma once

#include <cstdint>

#include "lab/random.hpp"

namespace kintsugi::lab {

// A float +-[1, 2) 2^exponent, each significand and sign equally likely; exponents of normal numbers.
float random_of_exponent(Random& random, int exponent);

enum class HighPart : std::uint8_t { truncated, rounded_up };

// Eq. 3: P(N = n, X). Over both X and n = -1 ... 12 they sum to 1.
double leading_zeros_probability(int n, HighPart high);

// Eq. 5 for a residual multiplied by 2^residual_exponent (sb; the paper's equations have 0). The first is
// that of Eq. 4's "underflow": the residual is below fp16's smallest subnormal, 2^-24. The second is
// P_(u+gu): it is below the smallest normal number, 2^-14. Both count r = 0 where N = 12 satisfies Eq. 4,
// although nothing is lost then.
double underflow_probability(int exponent, int residual_exponent = 0);
double underflow_or_gradual_probability(int exponent, int residual_exponent = 0);

// What random numbers of the exponent do, as shares of them.
struct UnderflowShares {
  // Eq. 4's conditions on N, which is 12 where r = 0, as the equations have it.
  double underflow = 0;
  double underflow_or_gradual = 0;
  // Where Eq. 4 is not what happens. fp16 rounds to nearest, so that residuals between 2^-25 and 2^-24 become
  // the smallest subnormal and are not lost: `lost` is at most `underflow`.
  double lost = 0;           // r is not 0 and the low slice is
  double zero_residual = 0;  // r = 0: a low slice of 0 is right
  double overflowed = 0;     // the high part is infinite (E = 15 alone); in no other share
};

// Exponents -126...15; from 16 on every high part is infinite. Throws core::Error (invalid_argument).
UnderflowShares simulate_underflow(int exponent, int residual_exponent, std::int64_t samples,
                                   std::uint64_t seed);

}  // namespace kintsugi::lab
