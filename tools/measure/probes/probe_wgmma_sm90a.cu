// Rate of the matrix units: wgmma in a loop, both operands resident in shared memory. m64n256 for every
// format, since the widest instruction reads the least shared memory per product.
#include "probe_elements.cuh"

namespace kintsugi::measure {

namespace {

constexpr int accumulators = wgmma_m * wgmma_n / 128;

#define KINTSUGI_SUMS_8(c, i)                                                                 \
  c(sums[i]), c(sums[i + 1]), c(sums[i + 2]), c(sums[i + 3]), c(sums[i + 4]), c(sums[i + 5]), \
      c(sums[i + 6]), c(sums[i + 7])
#define KINTSUGI_SUMS_64(c, i)                                                                              \
  KINTSUGI_SUMS_8(c, i), KINTSUGI_SUMS_8(c, i + 8), KINTSUGI_SUMS_8(c, i + 16), KINTSUGI_SUMS_8(c, i + 24), \
      KINTSUGI_SUMS_8(c, i + 32), KINTSUGI_SUMS_8(c, i + 40), KINTSUGI_SUMS_8(c, i + 48),                   \
      KINTSUGI_SUMS_8(c, i + 56)
// Computes sums = A B + (keep != 0 ? sums : 0); `rest`: further operands of the format's instruction.
#define KINTSUGI_WGMMA(c, instruction, rest)                                                              \
  asm volatile(                                                                                           \
      "{\n.reg .pred keep;\nsetp.ne.b32 keep, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256" instruction \
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                          \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                  \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                  \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "                  \
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "                  \
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "                  \
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "      \
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "        \
      "%127}, %128, %129, keep" rest ";\n}"                                                               \
      : KINTSUGI_SUMS_64(c, 0), KINTSUGI_SUMS_64(c, 64)                                                   \
      : "l"(a), "l"(b), "r"(keep))

struct Fp16 : Fp16Elements {
  static __device__ void multiply(Sum (&sums)[accumulators], std::uint64_t a, std::uint64_t b, int keep) {
    KINTSUGI_WGMMA("+f", "k16.f32.f16.f16", ", 1, 1, 0, 0");
  }
};

struct Bf16 : Bf16Elements {
  static __device__ void multiply(Sum (&sums)[accumulators], std::uint64_t a, std::uint64_t b, int keep) {
    KINTSUGI_WGMMA("+f", "k16.f32.bf16.bf16", ", 1, 1, 0, 0");
  }
};

struct Tf32 : Tf32Elements {
  static __device__ void multiply(Sum (&sums)[accumulators], std::uint64_t a, std::uint64_t b, int keep) {
    KINTSUGI_WGMMA("+f", "k8.f32.tf32.tf32", ", 1, 1");
  }
};

struct Int8 : Int8Elements {
  static __device__ void multiply(Sum (&sums)[accumulators], std::uint64_t a, std::uint64_t b, int keep) {
    KINTSUGI_WGMMA("+r", "k32.s32.s8.s8", "");
  }
};

// Returns the descriptor of rows of 128 bytes with 128-byte swizzle; eight rows take 1024 bytes (PTX ISA,
// matrix descriptor of wgmma).
__device__ std::uint64_t descriptor(const unsigned char* tile) {
  constexpr std::uint64_t swizzle_128 = std::uint64_t{1} << 62;
  constexpr std::uint64_t eight_rows = 8 * wgmma_row_bytes / 16;
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(tile));
  return swizzle_128 | eight_rows << 32 | std::uint64_t{1} << 16 | (address & 0x3ffff) >> 4;
}

template <class Format>
__device__ void fill(unsigned char* tile, ProbeSide side, int rows) {
  using Element = typename Format::Element;
  constexpr int length = wgmma_row_bytes / static_cast<int>(sizeof(Element));
  for (int i = static_cast<int>(threadIdx.x); i < rows * length; i += static_cast<int>(blockDim.x)) {
    const int k = i % length;
    *reinterpret_cast<Element*>(tile + swizzled_offset(i / length, k * static_cast<int>(sizeof(Element)))) =
        Format::element(side, i / length, k);
  }
}

// One pass over the operands: four instructions of 32 bytes of k.
template <class Format>
__device__ void pass(typename Format::Sum (&sums)[accumulators], std::uint64_t a, std::uint64_t b,
                     bool first) {
  constexpr std::uint64_t step = 32 / 16;
#pragma unroll
  for (int i = 0; i < wgmma_row_bytes / 32; ++i)
    Format::multiply(sums, a + i * step, b + i * step, i > 0 || !first);
}

// Multiplies different rows in each warpgroup by the same B; computes new sums of probe_period passes
// `periods` times. The last block writes its last sums, (wgmma_warpgroups * wgmma_m) x wgmma_n of them,
// row-major.
template <class Format>
__device__ void run(typename Format::Sum* result, int periods) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  unsigned char* tile_b = shared + wgmma_warpgroups * wgmma_m * wgmma_row_bytes;
  fill<Format>(shared, ProbeSide::a, wgmma_warpgroups * wgmma_m);
  fill<Format>(tile_b, ProbeSide::b, wgmma_n);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const std::uint64_t a = descriptor(shared + warpgroup * wgmma_m * wgmma_row_bytes);
  const std::uint64_t b = descriptor(tile_b);
  typename Format::Sum sums[accumulators] = {};
  constexpr int unrolled = 4;
  for (int i = 0; i < periods * (probe_period / unrolled); ++i) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int u = 0; u < unrolled; ++u) pass<Format>(sums, a, b, u == 0 && i % (probe_period / unrolled) == 0);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  if (blockIdx.x + 1 != gridDim.x) return;
  const int thread = static_cast<int>(threadIdx.x) % 128;
#pragma unroll
  for (int i = 0; i < accumulators; ++i) {
    const int row = warpgroup * wgmma_m + fragment_row(thread, i);
    result[row * wgmma_n + fragment_column(thread, i)] = sums[i];
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128 * wgmma_warpgroups, 1)
    wgmma_fp16(float* result, int periods) {
  run<Fp16>(result, periods);
}
extern "C" __global__ void __launch_bounds__(128 * wgmma_warpgroups, 1)
    wgmma_bf16(float* result, int periods) {
  run<Bf16>(result, periods);
}
extern "C" __global__ void __launch_bounds__(128 * wgmma_warpgroups, 1)
    wgmma_tf32(float* result, int periods) {
  run<Tf32>(result, periods);
}
extern "C" __global__ void __launch_bounds__(128 * wgmma_warpgroups, 1) wgmma_int8(int* result, int periods) {
  run<Int8>(result, periods);
}

}  // namespace kintsugi::measure
