// Warpgroup matrix multiplication (PTX ISA: wgmma.mma_async), 64 rows of D per instruction: fp16 and bf16
// with FP32 accumulators, int8 with int32 accumulators.
#pragma once

#include <cstdint>

#include "formats/format_id.hpp"

namespace kintsugi::core::cuda {

// Matrix descriptor of a tile in shared memory. Rows have 128 bytes with 128-byte swizzle; groups of eight
// rows are 1024 bytes apart. Descriptors differ in the address alone.
class MatrixDescriptor {
 public:
  __device__ explicit MatrixDescriptor(std::uint32_t address) : low_(address >> 4 | leading_offset) {}

  // Descriptor of the address that is `bytes` higher. `bytes` must be a multiple of 16.
  __device__ MatrixDescriptor operator+(std::uint32_t bytes) const {
    MatrixDescriptor result = *this;
    result.low_ += bytes >> 4;
    return result;
  }
  __device__ std::uint64_t bits() const {
    constexpr std::uint32_t swizzle_128 = 1U << 30;
    constexpr std::uint32_t eight_rows = 1024 / 16;
    std::uint64_t bits;
    asm("mov.b64 %0, {%1, %2};" : "=l"(bits) : "r"(low_), "r"(swizzle_128 | eight_rows));
    return bits;
  }

 private:
  static constexpr std::uint32_t leading_offset = 1U << 16;  // an offset of 1; ignored for this swizzle

  std::uint32_t low_;
};

// Loads operand A of the i-th instruction along k into registers (ldmatrix), 16 x 16 elements per warp.
// `tile` is the address of a tile of 64 rows in the layout of MatrixDescriptor.
__device__ inline void load_a_fragment(std::uint32_t (&registers)[4], std::uint32_t tile, int i) {
  const unsigned thread = threadIdx.x % 128;
  const unsigned row = thread / 32 * 16 + thread % 16;
  const std::uint32_t address = tile + row * 128 + ((2 * i + thread % 32 / 16) ^ (row % 8)) * 16;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
               : "r"(address)
               : "memory");
}

// Bytes of a tile's row that one instruction reads.
inline constexpr int step_bytes = 32;

__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most `Groups` committed groups are in flight.
template <int Groups>
__device__ void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Groups) : "memory");
}

// Keeps the compiler from moving accesses to accumulators across this point. The compiler does not know that
// wgmma writes accumulators asynchronously.
template <int Count>
__device__ void warpgroup_fence_operand(float (&sums)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}
template <int Count>
__device__ void warpgroup_fence_operand(std::int32_t (&sums)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+r"(sums[i])::"memory");
}

// clang-format off
#define KINTSUGI_OPERANDS_0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define KINTSUGI_OPERANDS_1 "%8, %9, %10, %11, %12, %13, %14, %15"
#define KINTSUGI_OPERANDS_2 "%16, %17, %18, %19, %20, %21, %22, %23"
#define KINTSUGI_OPERANDS_3 "%24, %25, %26, %27, %28, %29, %30, %31"
#define KINTSUGI_OPERANDS_4 "%32, %33, %34, %35, %36, %37, %38, %39"
#define KINTSUGI_OPERANDS_5 "%40, %41, %42, %43, %44, %45, %46, %47"
#define KINTSUGI_OPERANDS_6 "%48, %49, %50, %51, %52, %53, %54, %55"
#define KINTSUGI_OPERANDS_7 "%56, %57, %58, %59, %60, %61, %62, %63"
#define KINTSUGI_OPERANDS_8 "%64, %65, %66, %67, %68, %69, %70, %71"
#define KINTSUGI_OPERANDS_9 "%72, %73, %74, %75, %76, %77, %78, %79"
#define KINTSUGI_OPERANDS_10 "%80, %81, %82, %83, %84, %85, %86, %87"
#define KINTSUGI_OPERANDS_11 "%88, %89, %90, %91, %92, %93, %94, %95"
#define KINTSUGI_OPERANDS_12 "%96, %97, %98, %99, %100, %101, %102, %103"
#define KINTSUGI_OPERANDS_13 "%104, %105, %106, %107, %108, %109, %110, %111"
#define KINTSUGI_OPERANDS_14 "%112, %113, %114, %115, %116, %117, %118, %119"
#define KINTSUGI_OPERANDS_15 "%120, %121, %122, %123, %124, %125, %126, %127"
#define KINTSUGI_SUMS_8(i) \
  "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), \
  "+f"(sums[i + 5]), "+f"(sums[i + 6]), "+f"(sums[i + 7])
#define KINTSUGI_OPERANDS_OF_32 KINTSUGI_OPERANDS_0 ", " KINTSUGI_OPERANDS_1
#define KINTSUGI_SUMS_OF_32 KINTSUGI_SUMS_8(0), KINTSUGI_SUMS_8(8)
#define KINTSUGI_OPERANDS_OF_64 KINTSUGI_OPERANDS_0 ", " KINTSUGI_OPERANDS_1 ", " KINTSUGI_OPERANDS_2 ", " KINTSUGI_OPERANDS_3
#define KINTSUGI_SUMS_OF_64 KINTSUGI_SUMS_8(0), KINTSUGI_SUMS_8(8), KINTSUGI_SUMS_8(16), KINTSUGI_SUMS_8(24)
#define KINTSUGI_OPERANDS_OF_128 KINTSUGI_OPERANDS_0 ", " KINTSUGI_OPERANDS_1 ", " KINTSUGI_OPERANDS_2 ", " KINTSUGI_OPERANDS_3 ", " KINTSUGI_OPERANDS_4 ", " KINTSUGI_OPERANDS_5 ", " KINTSUGI_OPERANDS_6 ", " KINTSUGI_OPERANDS_7
#define KINTSUGI_SUMS_OF_128 KINTSUGI_SUMS_8(0), KINTSUGI_SUMS_8(8), KINTSUGI_SUMS_8(16), KINTSUGI_SUMS_8(24), KINTSUGI_SUMS_8(32), KINTSUGI_SUMS_8(40), KINTSUGI_SUMS_8(48), KINTSUGI_SUMS_8(56)
#define KINTSUGI_OPERANDS_OF_192 KINTSUGI_OPERANDS_0 ", " KINTSUGI_OPERANDS_1 ", " KINTSUGI_OPERANDS_2 ", " KINTSUGI_OPERANDS_3 ", " KINTSUGI_OPERANDS_4 ", " KINTSUGI_OPERANDS_5 ", " KINTSUGI_OPERANDS_6 ", " KINTSUGI_OPERANDS_7 ", " KINTSUGI_OPERANDS_8 ", " KINTSUGI_OPERANDS_9 ", " KINTSUGI_OPERANDS_10 ", " KINTSUGI_OPERANDS_11
#define KINTSUGI_SUMS_OF_192 KINTSUGI_SUMS_8(0), KINTSUGI_SUMS_8(8), KINTSUGI_SUMS_8(16), KINTSUGI_SUMS_8(24), KINTSUGI_SUMS_8(32), KINTSUGI_SUMS_8(40), KINTSUGI_SUMS_8(48), KINTSUGI_SUMS_8(56), KINTSUGI_SUMS_8(64), KINTSUGI_SUMS_8(72), KINTSUGI_SUMS_8(80), KINTSUGI_SUMS_8(88)
#define KINTSUGI_SUMS_OF_256 KINTSUGI_SUMS_OF_192, KINTSUGI_SUMS_8(96), KINTSUGI_SUMS_8(104), KINTSUGI_SUMS_8(112), KINTSUGI_SUMS_8(120)
#define KINTSUGI_OPERANDS_OF_176 KINTSUGI_OPERANDS_OF_128 ", " KINTSUGI_OPERANDS_8 ", " KINTSUGI_OPERANDS_9 ", " KINTSUGI_OPERANDS_10
#define KINTSUGI_OPERANDS_OF_256 KINTSUGI_OPERANDS_OF_192 ", " KINTSUGI_OPERANDS_12 ", " KINTSUGI_OPERANDS_13 ", " KINTSUGI_OPERANDS_14 ", " KINTSUGI_OPERANDS_15
#define KINTSUGI_INTEGERS_8(i) \
  "+r"(sums[i]), "+r"(sums[i + 1]), "+r"(sums[i + 2]), "+r"(sums[i + 3]), "+r"(sums[i + 4]), \
  "+r"(sums[i + 5]), "+r"(sums[i + 6]), "+r"(sums[i + 7])
#define KINTSUGI_NEW_INTEGERS_8(i) \
  "=r"(sums[i]), "=r"(sums[i + 1]), "=r"(sums[i + 2]), "=r"(sums[i + 3]), "=r"(sums[i + 4]), \
  "=r"(sums[i + 5]), "=r"(sums[i + 6]), "=r"(sums[i + 7])
#define KINTSUGI_OPERANDS_OF_96 KINTSUGI_OPERANDS_OF_64 ", " KINTSUGI_OPERANDS_4 ", " KINTSUGI_OPERANDS_5
#define KINTSUGI_NEW_INTEGERS_OF_64 KINTSUGI_NEW_INTEGERS_8(0), KINTSUGI_NEW_INTEGERS_8(8), KINTSUGI_NEW_INTEGERS_8(16), KINTSUGI_NEW_INTEGERS_8(24)
#define KINTSUGI_INTEGERS_OF_64 KINTSUGI_INTEGERS_8(0), KINTSUGI_INTEGERS_8(8), KINTSUGI_INTEGERS_8(16), KINTSUGI_INTEGERS_8(24)
#define KINTSUGI_NEW_INTEGERS_OF_96 KINTSUGI_NEW_INTEGERS_OF_64, KINTSUGI_NEW_INTEGERS_8(32), KINTSUGI_NEW_INTEGERS_8(40)
#define KINTSUGI_INTEGERS_OF_96 KINTSUGI_INTEGERS_OF_64, KINTSUGI_INTEGERS_8(32), KINTSUGI_INTEGERS_8(40)
#define KINTSUGI_NEW_INTEGERS_OF_128 KINTSUGI_NEW_INTEGERS_OF_96, KINTSUGI_NEW_INTEGERS_8(48), KINTSUGI_NEW_INTEGERS_8(56)
#define KINTSUGI_INTEGERS_OF_128 KINTSUGI_INTEGERS_OF_96, KINTSUGI_INTEGERS_8(48), KINTSUGI_INTEGERS_8(56)
#define KINTSUGI_INTEGERS_OF_176 KINTSUGI_INTEGERS_OF_128, KINTSUGI_INTEGERS_8(64), KINTSUGI_INTEGERS_8(72), KINTSUGI_INTEGERS_8(80)
#define KINTSUGI_INTEGERS_OF_192 KINTSUGI_INTEGERS_8(0), KINTSUGI_INTEGERS_8(8), KINTSUGI_INTEGERS_8(16), KINTSUGI_INTEGERS_8(24), KINTSUGI_INTEGERS_8(32), KINTSUGI_INTEGERS_8(40), KINTSUGI_INTEGERS_8(48), KINTSUGI_INTEGERS_8(56), KINTSUGI_INTEGERS_8(64), KINTSUGI_INTEGERS_8(72), KINTSUGI_INTEGERS_8(80), KINTSUGI_INTEGERS_8(88)
#define KINTSUGI_INTEGERS_OF_256 KINTSUGI_INTEGERS_OF_192, KINTSUGI_INTEGERS_8(96), KINTSUGI_INTEGERS_8(104), KINTSUGI_INTEGERS_8(112), KINTSUGI_INTEGERS_8(120)
// clang-format on

// Issues D = A B + (keep ? D : 0) with A and B in shared memory. `sums` is the thread's fragment of D.
template <FormatId Format, int Columns>
__device__ void wgmma(float (&sums)[Columns / 2], MatrixDescriptor a, MatrixDescriptor b, bool keep);

#define KINTSUGI_MULTIPLY(format, type, columns, a_number, b_number, keep_number)                            \
  template <>                                                                                                \
  __device__ inline void wgmma<FormatId::format, columns>(float(&sums)[columns / 2], MatrixDescriptor a,     \
                                                          MatrixDescriptor b, bool keep) {                   \
    asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, %" keep_number                                      \
                 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type                 \
                 " {" KINTSUGI_OPERANDS_OF_##columns "}, %" a_number ", %" b_number ", keep, 1, 1, 0, 0;\n}" \
                 : KINTSUGI_SUMS_OF_##columns                                                                \
                 : "l"(a.bits()), "l"(b.bits()), "r"(static_cast<int>(keep)));                               \
  }
KINTSUGI_MULTIPLY(fp16, "f16", 32, "16", "17", "18")
KINTSUGI_MULTIPLY(fp16, "f16", 64, "32", "33", "34")
KINTSUGI_MULTIPLY(fp16, "f16", 128, "64", "65", "66")
KINTSUGI_MULTIPLY(fp16, "f16", 192, "96", "97", "98")
KINTSUGI_MULTIPLY(fp16, "f16", 256, "128", "129", "130")
KINTSUGI_MULTIPLY(bf16, "bf16", 64, "32", "33", "34")
KINTSUGI_MULTIPLY(bf16, "bf16", 128, "64", "65", "66")
#undef KINTSUGI_MULTIPLY

// 8 inner indices of tf32 have as many bytes.
template <>
__device__ inline void wgmma<FormatId::tf32, 128>(float (&sums)[64], MatrixDescriptor a, MatrixDescriptor b,
                                                  bool keep) {
  asm volatile(
      "{\n.reg .pred keep;\nsetp.ne.b32 keep, %66, 0;\nwgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 "
      "{" KINTSUGI_OPERANDS_OF_128 "}, %64, %65, keep, 1, 1;\n}"
      : KINTSUGI_SUMS_OF_128
      : "l"(a.bits()), "l"(b.bits()), "r"(static_cast<int>(keep)));
}

// Issues the same product with A in registers, loaded by load_a_fragment().
template <FormatId Format, int Columns>
__device__ void wgmma(float (&sums)[Columns / 2], const std::uint32_t (&a)[4], MatrixDescriptor b, bool keep);

template <>
__device__ inline void wgmma<FormatId::fp16, 192>(float (&sums)[96], const std::uint32_t (&a)[4],
                                                  MatrixDescriptor b, bool keep) {
  asm volatile(
      "{\n.reg .pred keep;\nsetp.ne.b32 keep, %101, 0;\nwgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16 "
      "{" KINTSUGI_OPERANDS_OF_192 "}, {%96, %97, %98, %99}, %100, keep, 1, 1, 0;\n}"
      : KINTSUGI_SUMS_OF_192
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b.bits()), "r"(static_cast<int>(keep)));
}

template <>
__device__ inline void wgmma<FormatId::bf16, 64>(float (&sums)[32], const std::uint32_t (&a)[4],
                                                 MatrixDescriptor b, bool keep) {
  asm volatile(
      "{\n.reg .pred keep;\nsetp.ne.b32 keep, %37, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{" KINTSUGI_OPERANDS_OF_64 "}, {%32, %33, %34, %35}, %36, keep, 1, 1, 0;\n}"
      : KINTSUGI_SUMS_OF_64
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b.bits()), "r"(static_cast<int>(keep)));
}

// Issues the int8 product of 64 rows of A and `Columns` columns of B over 32 inner indices. Sums from index
// Columns / 2 on are not used.
template <int Columns, int Count>
__device__ void wgmma(std::int32_t (&sums)[Count], MatrixDescriptor a, MatrixDescriptor b, bool keep);

#define KINTSUGI_MULTIPLY(count, columns, a_number, b_number, keep_number)                                  \
  template <>                                                                                               \
  __device__ inline void wgmma<columns>(std::int32_t(&sums)[count], MatrixDescriptor a, MatrixDescriptor b, \
                                        bool keep) {                                                        \
    asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, %" keep_number                                     \
                 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #columns                                         \
                 "k32.s32.s8.s8 {" KINTSUGI_OPERANDS_OF_##columns "}, %" a_number ", %" b_number            \
                                                                  ", keep;\n}"                              \
                 : KINTSUGI_INTEGERS_OF_##columns                                                           \
                 : "l"(a.bits()), "l"(b.bits()), "r"(static_cast<int>(keep)));                              \
  }
KINTSUGI_MULTIPLY(96, 176, "88", "89", "90")
KINTSUGI_MULTIPLY(96, 192, "96", "97", "98")
KINTSUGI_MULTIPLY(128, 256, "128", "129", "130")
#undef KINTSUGI_MULTIPLY

// Issue int8 products of 64 rows over 32 inner indices. wgmma_first() begins new sums: its accumulators are
// only outputs, so the compiler need not keep earlier values in registers. wgmma_next() adds to the sums.
#define KINTSUGI_MULTIPLY(count, columns, a_number, b_number)                                               \
  __device__ inline void wgmma_first(std::int32_t(&sums)[count], MatrixDescriptor a, MatrixDescriptor b) {  \
    asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, 0, 0;\nwgmma.mma_async.sync.aligned.m64n" #columns \
                 "k32.s32.s8.s8 {" KINTSUGI_OPERANDS_OF_##columns "}, %" a_number ", %" b_number            \
                                                                  ", keep;\n}"                              \
                 : KINTSUGI_NEW_INTEGERS_OF_##columns                                                       \
                 : "l"(a.bits()), "l"(b.bits()));                                                           \
  }                                                                                                         \
  __device__ inline void wgmma_next(std::int32_t(&sums)[count], MatrixDescriptor a, MatrixDescriptor b) {   \
    asm volatile("{\n.reg .pred keep;\nsetp.eq.b32 keep, 0, 0;\nwgmma.mma_async.sync.aligned.m64n" #columns \
                 "k32.s32.s8.s8 {" KINTSUGI_OPERANDS_OF_##columns "}, %" a_number ", %" b_number            \
                                                                  ", keep;\n}"                              \
                 : KINTSUGI_INTEGERS_OF_##columns                                                           \
                 : "l"(a.bits()), "l"(b.bits()));                                                           \
  }
KINTSUGI_MULTIPLY(32, 64, "32", "33")
KINTSUGI_MULTIPLY(48, 96, "48", "49")
KINTSUGI_MULTIPLY(64, 128, "64", "65")
#undef KINTSUGI_MULTIPLY

}  // namespace kintsugi::core::cuda
