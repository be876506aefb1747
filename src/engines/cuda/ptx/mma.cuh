// Matrix multiplication of one warp (PTX ISA: mma.sync).
#pragma once

#include <cstdint>

#include "formats/format_id.hpp"

namespace kintsugi::core::cuda {

// Adds to `sums` the product of 16 rows of A and 8 columns of B over 16 inner indices; elements are fp16.
__device__ inline void mma_fp16(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Sets `sums` to `start` plus the product of 16 rows of A and 8 columns of B over 32 bytes of inner indices:
// 16 elements of fp16 or bf16, or 8 of tf32.
template <FormatId Format>
__device__ void mma_from(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                         const float (&start)[4]) {
  if constexpr (Format == FormatId::fp16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%10, %11, %12, %13};"
        : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(start[0]), "f"(start[1]),
          "f"(start[2]), "f"(start[3]));
  } else if constexpr (Format == FormatId::tf32) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%10, %11, %12, %13};"
        : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(start[0]), "f"(start[1]),
          "f"(start[2]), "f"(start[3]));
  } else {
    static_assert(Format == FormatId::bf16);
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%10, %11, %12, %13};"
        : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(start[0]), "f"(start[1]),
          "f"(start[2]), "f"(start[3]));
  }
}

// Adds to `sums` the product of 16 rows of A and 8 columns of B over 32 inner indices; elements are unsigned
// bytes. It is not volatile, since the instruction depends on nothing but its operands.
__device__ inline void mma_bytes(std::uint32_t (&sums)[4], const std::uint32_t (&a)[4],
                                 const std::uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Sets `sums` to such a product of signed bytes plus `start`.
__device__ inline void mma_signed_bytes(std::int32_t (&sums)[4], const std::uint32_t (&a)[4],
                                        const std::uint32_t (&b)[2], const std::int32_t (&start)[4]) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%10, %11, %12, %13};"
      : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(start[0]), "r"(start[1]),
        "r"(start[2]), "r"(start[3]));
}

}  // namespace kintsugi::core::cuda
