// Matrix multiplication of one warp (PTX ISA: mma.sync).
#pragma once

#include <cstdint>

namespace kintsugi::core::cuda {

// Adds to `sums` the product of 16 rows of A and 8 columns of B over 16 inner indices; elements are fp16.
__device__ inline void mma_fp16(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace kintsugi::core::cuda
