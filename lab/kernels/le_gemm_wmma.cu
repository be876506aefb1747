// The kernels that the LE-GEMM paper compares, on nvcuda::wmma: plain WMMA, Markidis's, Ootomo's and
// LE-GEMM's products, each read from global memory fragment by fragment, from tiles in shared memory, or from
// two such tiles that take turns (section 4.3). A (m,k), B (k,n) and C (m,n) are row-major, C = A B; sizes
// are multiples of the tiles.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include <cstdint>

#include "le_gemm_values.hpp"

namespace kintsugi::lab {

namespace {

using namespace nvcuda;

constexpr int edge = 16;  // of a fragment (Table 2)
using PartOfA = wmma::fragment<wmma::matrix_a, edge, edge, edge, __half, wmma::row_major>;
using PartOfB = wmma::fragment<wmma::matrix_b, edge, edge, edge, __half, wmma::row_major>;
using Sum = wmma::fragment<wmma::accumulator, edge, edge, edge, float>;

// ---------------------------------------------------------------- the schemes

// A scheme has slices of each operand, accumulators for each fragment of C and a step of 16 inner indices.
// `weight` is that of the second accumulator.
struct Wmma {
  static constexpr int slices = 1, sums = 1;
  static __device__ void add(Sum (&sum)[sums], const PartOfA (&a)[slices], const PartOfB (&b)[slices]) {
    wmma::mma_sync(sum[0], a[0], b[0], sum[0]);
  }
};

struct Markidis {
  static constexpr int slices = 2, sums = 1;
  static __device__ void add(Sum (&sum)[sums], const PartOfA (&a)[slices], const PartOfB (&b)[slices]) {
    wmma::mma_sync(sum[0], a[1], b[1], sum[0]);
    wmma::mma_sync(sum[0], a[0], b[1], sum[0]);
    wmma::mma_sync(sum[0], a[1], b[0], sum[0]);
    wmma::mma_sync(sum[0], a[0], b[0], sum[0]);
  }
};

// The main product of every step begins at zero and is added outside the matrix unit, to nearest.
struct Ootomo {
  static constexpr int slices = 2, sums = 2;
  static constexpr float weight = 0x1p-11f;
  static __device__ void add(Sum (&sum)[sums], const PartOfA (&a)[slices], const PartOfB (&b)[slices]) {
    Sum step;
    wmma::fill_fragment(step, 0.0f);
    wmma::mma_sync(step, a[0], b[0], step);
#pragma unroll
    for (int i = 0; i < step.num_elements; ++i) sum[0].x[i] += step.x[i];
    wmma::mma_sync(sum[1], a[0], b[1], sum[1]);
    wmma::mma_sync(sum[1], a[1], b[0], sum[1]);
  }
};

struct LeGemm {  // Algorithm 1
  static constexpr int slices = 2, sums = 2;
  static constexpr float weight = 0x1p-10f;
  static __device__ void add(Sum (&sum)[sums], const PartOfA (&a)[slices], const PartOfB (&b)[slices]) {
    wmma::mma_sync(sum[0], a[0], b[0], sum[0]);
    wmma::mma_sync(sum[1], a[0], b[1], sum[1]);
    wmma::mma_sync(sum[1], a[1], b[0], sum[1]);
  }
};

template <int sums>
__device__ void clear(Sum (&sum)[sums]) {
#pragma unroll
  for (int s = 0; s < sums; ++s) wmma::fill_fragment(sum[s], 0.0f);
}

template <class Scheme>
__device__ void store(float* c, std::int64_t n, Sum (&sum)[Scheme::sums]) {
  if constexpr (Scheme::sums == 2) {
#pragma unroll
    for (int i = 0; i < sum[0].num_elements; ++i) sum[0].x[i] += sum[1].x[i] * Scheme::weight;
  }
  wmma::store_matrix_sync(c, sum[0], static_cast<unsigned>(n), wmma::mem_row_major);
}

// Matrices of a product. Without a second slice its pointers are null.
struct Matrices {
  const __half* a[2];
  const __half* b[2];
  float* c;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

// ---------------------------------------------------------------- fragments from global memory

constexpr int direct_warps = 4;  // warps of a thread block, down and across; each has one fragment of C

template <class Scheme>
__device__ void multiply_directly(const Matrices& x) {
  constexpr int side = direct_warps * edge;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t columns = x.n / side;
  const std::int64_t row = blockIdx.x / columns * side + warp / direct_warps * edge;
  const std::int64_t column = blockIdx.x % columns * side + warp % direct_warps * edge;
  Sum sum[Scheme::sums];
  clear(sum);
  for (std::int64_t k = 0; k < x.k; k += edge) {
    PartOfA a[Scheme::slices];
    PartOfB b[Scheme::slices];
#pragma unroll
    for (int s = 0; s < Scheme::slices; ++s) {
      wmma::load_matrix_sync(a[s], x.a[s] + row * x.k + k, static_cast<unsigned>(x.k));
      wmma::load_matrix_sync(b[s], x.b[s] + k * x.n + column, static_cast<unsigned>(x.n));
    }
    Scheme::add(sum, a, b);
  }
  store<Scheme>(x.c + row * x.n + column, x.n, sum);
}

// ---------------------------------------------------------------- tiles in shared memory

template <int rows_, int columns_, int warp_rows_, int warp_columns_, int buffers_>
struct Tile {
  static constexpr int rows = rows_, columns = columns_, depth = 32;  // T_M, T_N, T_K
  static constexpr int warp_rows = warp_rows_, warp_columns = warp_columns_;
  static constexpr int buffers = buffers_;  // 2: a tile is copied while the one before it is multiplied
  static constexpr int threads = 32 * warp_rows * warp_columns;
  static constexpr int down = rows / warp_rows / edge;  // fragments of C of a warp
  static constexpr int across = columns / warp_columns / edge;
  static constexpr int pad = 8;  // halves that shift the banks of successive rows
  static constexpr int stride_a = depth + pad, stride_b = columns + pad;
  static constexpr int halves_a = rows * stride_a, halves_b = depth * stride_b;
};

// Copies `rows` rows of `columns` halves, 16 bytes an access.
template <int rows, int columns, int stride, int threads>
__device__ void copy_rows(__half* target, const __half* source, std::int64_t source_stride) {
  constexpr int unit = 8, units = columns / unit;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < rows * units; i += threads) {
    const int row = i / units, column = i % units * unit;
    __pipeline_memcpy_async(target + row * stride + column, source + row * source_stride + column, 16);
  }
}

template <class Scheme, class T>
__device__ void copy_tile(__half* buffer, const Matrices& x, std::int64_t row, std::int64_t column,
                          std::int64_t k) {
#pragma unroll
  for (int s = 0; s < Scheme::slices; ++s) {
    copy_rows<T::rows, T::depth, T::stride_a, T::threads>(buffer, x.a[s] + row * x.k + k, x.k);
    copy_rows<T::depth, T::columns, T::stride_b, T::threads>(buffer + T::halves_a, x.b[s] + k * x.n + column,
                                                             x.n);
    buffer += T::halves_a + T::halves_b;
  }
  __pipeline_commit();
}

template <class Scheme, class T>
__device__ void multiply_tile(Sum (&sum)[T::down][T::across][Scheme::sums], const __half* buffer, int warp) {
  constexpr int halves = T::halves_a + T::halves_b;
  const __half* first_a = buffer + warp / T::warp_columns * T::down * edge * T::stride_a;
  const __half* first_b = buffer + T::halves_a + warp % T::warp_columns * T::across * edge;
#pragma unroll
  for (int k = 0; k < T::depth; k += edge) {
    PartOfA a[T::down][Scheme::slices];
#pragma unroll
    for (int i = 0; i < T::down; ++i) {
#pragma unroll
      for (int s = 0; s < Scheme::slices; ++s)
        wmma::load_matrix_sync(a[i][s], first_a + s * halves + i * edge * T::stride_a + k, T::stride_a);
    }
#pragma unroll
    for (int j = 0; j < T::across; ++j) {
      PartOfB b[Scheme::slices];
#pragma unroll
      for (int s = 0; s < Scheme::slices; ++s)
        wmma::load_matrix_sync(b[s], first_b + s * halves + k * T::stride_b + j * edge, T::stride_b);
#pragma unroll
      for (int i = 0; i < T::down; ++i) Scheme::add(sum[i][j], a[i], b);
    }
  }
}

template <class Scheme, class T>
__device__ void multiply_by_tiles(const Matrices& x) {
  extern __shared__ uint4 shared[];
  __half* buffers = reinterpret_cast<__half*>(shared);
  constexpr int halves = Scheme::slices * (T::halves_a + T::halves_b);
  const std::int64_t columns = x.n / T::columns;
  const std::int64_t row = blockIdx.x / columns * T::rows, column = blockIdx.x % columns * T::columns;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  Sum sum[T::down][T::across][Scheme::sums];
#pragma unroll
  for (int i = 0; i < T::down; ++i) {
#pragma unroll
    for (int j = 0; j < T::across; ++j) clear(sum[i][j]);
  }
  int buffer = 0;
  if constexpr (T::buffers == 2) copy_tile<Scheme, T>(buffers, x, row, column, 0);
  for (std::int64_t k = 0; k < x.k; k += T::depth) {
    if constexpr (T::buffers == 2) {
      if (k + T::depth < x.k) {
        copy_tile<Scheme, T>(buffers + (buffer ^ 1) * halves, x, row, column, k + T::depth);
        __pipeline_wait_prior(1);
      } else {
        __pipeline_wait_prior(0);
      }
    } else {
      copy_tile<Scheme, T>(buffers, x, row, column, k);
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    multiply_tile<Scheme, T>(sum, buffers + buffer * halves, warp);
    __syncthreads();  // before the buffer is written again
    if constexpr (T::buffers == 2) buffer ^= 1;
  }
#pragma unroll
  for (int i = 0; i < T::down; ++i) {
#pragma unroll
    for (int j = 0; j < T::across; ++j) {
      const std::int64_t first_row = row + (warp / T::warp_columns * T::down + i) * edge;
      const std::int64_t first_column = column + (warp % T::warp_columns * T::across + j) * edge;
      store<Scheme>(x.c + first_row * x.n + first_column, x.n, sum[i][j]);
    }
  }
}

}  // namespace

// ---------------------------------------------------------------- kernels

#define KINTSUGI_DIRECT(name, Scheme)                                                                     \
  extern "C" __global__ void __launch_bounds__(32 * direct_warps * direct_warps) name(const Matrices x) { \
    multiply_directly<Scheme>(x);                                                                         \
  }
#define KINTSUGI_TILED(name, Scheme, ...)                                                              \
  extern "C" __global__ void __launch_bounds__(Tile<__VA_ARGS__>::threads, 1) name(const Matrices x) { \
    multiply_by_tiles<Scheme, Tile<__VA_ARGS__>>(x);                                                   \
  }

KINTSUGI_DIRECT(wmma_direct, Wmma)
KINTSUGI_DIRECT(markidis_direct, Markidis)
KINTSUGI_DIRECT(ootomo_direct, Ootomo)
KINTSUGI_DIRECT(le_gemm_direct, LeGemm)
// Rows and columns of the tile, warps down and across, buffers.
KINTSUGI_TILED(wmma_128x128x1, Wmma, 128, 128, 4, 2, 1)
KINTSUGI_TILED(markidis_128x128x1, Markidis, 128, 128, 4, 2, 1)
KINTSUGI_TILED(ootomo_128x128x1, Ootomo, 128, 128, 4, 2, 1)
KINTSUGI_TILED(le_gemm_128x128x1, LeGemm, 128, 128, 4, 2, 1)
KINTSUGI_TILED(le_gemm_64x64x2, LeGemm, 64, 64, 2, 2, 2)
KINTSUGI_TILED(le_gemm_64x128x2, LeGemm, 64, 128, 2, 4, 2)
KINTSUGI_TILED(le_gemm_128x64x2, LeGemm, 128, 64, 4, 2, 2)
KINTSUGI_TILED(le_gemm_128x128x2, LeGemm, 128, 128, 4, 2, 2)
KINTSUGI_TILED(le_gemm_128x256x2, LeGemm, 128, 256, 4, 4, 2)

// Writes the elements of a matrix.
extern "C" __global__ void fill_elements(float* x, std::uint64_t seed, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    x[i] = le_gemm_element(seed, static_cast<std::uint64_t>(i));
}

// Splits a matrix: `cut` towards zero, else to nearest; the residual is multiplied by `scale`. A null `low`
// is left out.
extern "C" __global__ void split_elements(__half* high, __half* low, const float* x, std::int64_t count,
                                          float scale, bool cut) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const float value = x[i];
    high[i] = cut ? __float2half_rz(value) : __float2half_rn(value);
    if (low == nullptr) continue;
    const float residual = (value - __half2float(high[i])) * scale;
    low[i] = cut ? __float2half_rz(residual) : __float2half_rn(residual);
  }
}

}  // namespace kintsugi::lab
