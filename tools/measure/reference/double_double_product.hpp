// Reference loop in double-double arithmetic.
#pragma once

#include <cstdint>

namespace kintsugi::measure {

// Significant bits of a sum. A step loses at most 5 u^2 of |sum| + |product|, u = 2^-53, which is less than
// 2^-103: two-sum and the product are error-free; two additions of the low parts, each at most u of its high
// part, lose 3 u^2; and if sum and product nearly cancel, the last fast-two-sum, whose first number is then
// the smaller, loses another 2 u^2. A product below 2^-968 loses up to 2^-1074 more.
inline constexpr int double_double_bits = 103;

// Computes a row of C, n sums high + low along k: a (k) is the row of A, b (k,n) is row-major. Vectorized if
// the CPU has fused multiply-adds.
void double_double_row(const double* a, const double* b, std::int64_t n, std::int64_t k, double* high,
                       double* low);

}  // namespace kintsugi::measure
