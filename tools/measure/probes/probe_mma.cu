// Rate of the matrix units through mma.sync, which all architectures from sm_80 on have: operands in
// registers, as the instruction requires, and sixteen independent sums per warp.
#include "probe_elements.cuh"

namespace kintsugi::measure {

namespace {

#define KINTSUGI_MMA(c, instruction)                             \
  asm volatile("mma.sync.aligned.m16n8" instruction              \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " \
               "{%0, %1, %2, %3};"                               \
               : c(sums[0]), c(sums[1]), c(sums[2]), c(sums[3])  \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

struct Fp16 : Fp16Elements {
  static __device__ void multiply(Sum (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    KINTSUGI_MMA("+f", "k16.row.col.f32.f16.f16.f32");
  }
};

struct Bf16 : Bf16Elements {
  static __device__ void multiply(Sum (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    KINTSUGI_MMA("+f", "k16.row.col.f32.bf16.bf16.f32");
  }
};

struct Tf32 : Tf32Elements {
  static __device__ void multiply(Sum (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    KINTSUGI_MMA("+f", "k8.row.col.f32.tf32.tf32.f32");
  }
};

struct Int8 : Int8Elements {
  static __device__ void multiply(Sum (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    KINTSUGI_MMA("+r", "k32.row.col.s32.s8.s8.s32");
  }
};

// Returns the four bytes of k from `byte` on, as in a register.
template <class Format>
__device__ unsigned word(ProbeSide side, int vector, int byte) {
  constexpr int size = static_cast<int>(sizeof(typename Format::Element));
  union {
    typename Format::Element elements[4 / size];
    unsigned bits;
  } packed;
#pragma unroll
  for (int i = 0; i < 4 / size; ++i) packed.elements[i] = Format::element(side, vector, byte / size + i);
  return packed.bits;
}

// Loads fragments, the same for all formats if counted in bytes of k (PTX ISA, fragments of A and B):
// register r of A is 8 (r % 2) rows and 16 (r / 2) bytes further, register r of B 16 r bytes.
template <class Format>
__device__ void load(unsigned (&a)[mma_tiles][4], unsigned (&b)[mma_tiles][2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int tile = 0; tile < mma_tiles; ++tile) {
#pragma unroll
    for (int r = 0; r < 4; ++r)
      a[tile][r] = word<Format>(ProbeSide::a, 16 * tile + lane / 4 + r % 2 * 8, r / 2 * 16 + lane % 4 * 4);
#pragma unroll
    for (int r = 0; r < 2; ++r)
      b[tile][r] = word<Format>(ProbeSide::b, 8 * tile + lane / 4, r * 16 + lane % 4 * 4);
  }
}

// Computes new sums of probe_period passes `periods` times. The last block's last warp writes its last sums,
// mma_m x mma_n of them, row-major.
template <class Format>
__device__ void run(typename Format::Sum* result, int periods) {
  using Sum = typename Format::Sum;
  unsigned a[mma_tiles][4];
  unsigned b[mma_tiles][2];
  load<Format>(a, b);
  Sum sums[mma_tiles][mma_tiles][4];
  for (int period = 0; period < periods; ++period) {
#pragma unroll
    for (int i = 0; i < 4 * mma_tiles * mma_tiles; ++i) sums[i / 4 / mma_tiles][i / 4 % mma_tiles][i % 4] = 0;
    for (int pass = 0; pass < probe_period; ++pass) {
#pragma unroll
      for (int tile = 0; tile < mma_tiles * mma_tiles; ++tile)
        Format::multiply(sums[tile / mma_tiles][tile % mma_tiles], a[tile / mma_tiles], b[tile % mma_tiles]);
    }
  }
  if (blockIdx.x + 1 != gridDim.x || threadIdx.x + 32 < blockDim.x) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int tile = 0; tile < mma_tiles * mma_tiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = tile / mma_tiles * 16 + fragment_row(lane, i);
      result[row * mma_n + tile % mma_tiles * 8 + fragment_column(lane, i)] =
          sums[tile / mma_tiles][tile % mma_tiles][i];
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(32 * mma_warps) mma_fp16(float* result, int periods) {
  run<Fp16>(result, periods);
}
extern "C" __global__ void __launch_bounds__(32 * mma_warps) mma_bf16(float* result, int periods) {
  run<Bf16>(result, periods);
}
extern "C" __global__ void __launch_bounds__(32 * mma_warps) mma_tf32(float* result, int periods) {
  run<Tf32>(result, periods);
}
extern "C" __global__ void __launch_bounds__(32 * mma_warps) mma_int8(int* result, int periods) {
  run<Int8>(result, periods);
}

}  // namespace kintsugi::measure
