// Products of MixPert's levels for programs at the paper's sizes, ten times as fast on AVX2 as the engine cpu.
#pragma once

#include <cstdint>

namespace kintsugi::lab {

// Computes C = A B of row-major FP32 matrices, m x k, k x n and m x n, by the segments of A and of B, 2 or 3: level
// I has (2, 2), II (2, 3), III (3, 2) and IV (3, 3). The bits are those of the schemes mixpert-1 to mixpert-4. Returns
// false, with C undefined, if the CPU has no AVX2, if a tile fails Eq. 9, or if an element is subnormal or not in
// +-2^±60: the schemes treat those otherwise.
bool multiply_segments(int segments_a, int segments_b, std::int64_t m, std::int64_t n, std::int64_t k,
                       const float* a, const float* b, float* c);

}  // namespace kintsugi::lab
