// Products of MixPert's levels for programs at the paper's sizes, five times as fast on AVX2 as engine cpu.
#pragma once

#include <cstdint>

namespace kintsugi::lab {

// Computes C = A B of row-major FP32 matrices, m x k, k x n and m x n, by the segments of A and of B, 2 or 3:
// level I has (2, 2), II (2, 3), III (3, 2) and IV (3, 3). The bits are those of the schemes mixpert-1 to
// mixpert-4. Returns false, with C undefined, where the schemes do otherwise: if a tile fails Eq. 9, or an
// element is subnormal or not within 2^±60; and if the CPU has no AVX2.
bool multiply_segments(int segments_a, int segments_b, std::int64_t m, std::int64_t n, std::int64_t k,
                       const float* a, const float* b, float* c);

}  // namespace kintsugi::lab
