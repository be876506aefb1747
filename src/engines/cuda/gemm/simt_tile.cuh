// Tiles of products by SIMT kernels. Operands are in shared memory, sums in registers. Products are added in
// ascending k, by fused multiply-add in the elements' own type.
#pragma once

#include <type_traits>

#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/gemm/native_epilogue.cuh"
#include "engines/cuda/gemm/simt_tiles.hpp"
#include "engines/cuda/ptx/shared_memory.cuh"

namespace kintsugi::core::cuda {

__device__ inline float fused(float x, float y, float sum) { return __fmaf_rn(x, y, sum); }
__device__ inline double fused(double x, double y, double sum) { return __fma_rn(x, y, sum); }

// Adds x y to `sum`, in the order of an embedding's products (base/embedding.hpp).
template <class T>
__device__ void add_product(T& sum, T x, T y) {
  sum = fused(x, y, sum);
}
template <class T>
__device__ void add_product(Complex<T>& sum, const Complex<T>& x, const Complex<T>& y) {
  sum = {fused(x.imag(), -y.imag(), fused(x.real(), y.real(), sum.real())),
         fused(x.imag(), y.real(), fused(x.real(), y.imag(), sum.imag()))};
}

// Elements of a step: `depth` inner indices of a tile's vectors. Padding avoids bank conflicts.
template <class T, int Tile>
struct KTile {
  static constexpr int tile = Tile;
  static constexpr int depth = simt_depth<T>(Tile);
  static constexpr int chunk = 16 / static_cast<int>(sizeof(T));  // elements in 16 bytes
  static constexpr int pitch = tile + chunk;

  alignas(16) unsigned char bytes[depth * pitch * sizeof(T)];

  __device__ T* at(int p, int vector) { return reinterpret_cast<T*>(bytes) + p * pitch + vector; }
};

// Two steps of both operands in shared memory. While one step is multiplied, the next one is loaded.
template <class T, int Tile>
struct KTiles {
  KTile<T, Tile> a[2];
  KTile<T, Tile> b[2];
};

// Pattern of the copies of a step. Neighboring lanes copy neighbors in memory: 16 bytes or one element each.
enum class SimtCopyPattern : std::uint8_t { chunks_along_vectors, elements_along_vectors, elements_along_k };

// Fastest pattern for an operand. `view` must begin at the tile's first vector.
template <class T, int Tile>
__device__ SimtCopyPattern copy_pattern(const MatrixView<const T>& view) {
  if (view.column_stride < view.row_stride) return SimtCopyPattern::elements_along_k;
  const bool aligned = view.row_stride == 1 && view.column_stride % KTile<T, Tile>::chunk == 0 &&
                       reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0;
  return aligned && !is_complex<T> ? SimtCopyPattern::chunks_along_vectors
                                   : SimtCopyPattern::elements_along_vectors;
}

// Copies of one thread for one operand. Complex elements pass through registers, where they are conjugated.
template <class T, int Tile>
class Loader {
 public:
  using Step = KTile<T, Tile>;

  // Loads `vectors` vectors from vector `first` on, and their elements from inner index `first_inner` on.
  __device__ Loader(const DeviceSide& side, std::int64_t first, std::int64_t vectors,
                    std::int64_t first_inner)
      : matrix_(side.matrix), is_whole_(vectors >= Tile) {
    const MatrixView<const T> view =
        view_of<const T>(side.matrix, side.item + blockIdx.y)
            .block(first, first_inner, side.matrix.rows - first, side.matrix.columns - first_inner);
    pattern_ = copy_pattern<T, Tile>(view);
    const int lanes = pattern_ == SimtCopyPattern::elements_along_k       ? Step::depth
                      : pattern_ == SimtCopyPattern::chunks_along_vectors ? Tile / Step::chunk
                                                                          : Tile;
    const int lane = static_cast<int>(threadIdx.x) % lanes;
    const int line = static_cast<int>(threadIdx.x) / lanes;
    const int vector = pattern_ == SimtCopyPattern::elements_along_k       ? line
                       : pattern_ == SimtCopyPattern::chunks_along_vectors ? lane * Step::chunk
                                                                           : lane;
    p_ = pattern_ == SimtCopyPattern::elements_along_k ? lane : line;
    offset_ = p_ * Step::pitch + vector;
    vectors_left_ = static_cast<int>(std::min<std::int64_t>(vectors, Tile)) - vector;
    source_ = view.data + vector * view.row_stride + p_ * view.column_stride;
  }

  // Begins to load the elements of the next step. Its first `inner` inner indices are inside the operand; all
  // others become zeros. The elements are in `step` after end_load().
  __device__ void begin_load(Step& step, int inner) {
    if (pattern_ == SimtCopyPattern::chunks_along_vectors) {
      begin_load<SimtCopyPattern::chunks_along_vectors>(step, inner);
    } else if (pattern_ == SimtCopyPattern::elements_along_k) {
      begin_load<SimtCopyPattern::elements_along_k>(step, inner);
    } else {
      begin_load<SimtCopyPattern::elements_along_vectors>(step, inner);
    }
    source_ += Step::depth * matrix_.column_stride;
  }
  __device__ void end_load(Step& step) const {
    if constexpr (!is_complex<T>) {
      await_copies();
    } else if (pattern_ == SimtCopyPattern::elements_along_k) {
      store<SimtCopyPattern::elements_along_k>(step);
    } else {
      store<SimtCopyPattern::elements_along_vectors>(step);
    }
  }

 private:
  // Copies of a thread in a step: their distance in vectors and in inner indices, and their number.
  template <SimtCopyPattern Pattern>
  struct Copies {
    static constexpr bool chunks = Pattern == SimtCopyPattern::chunks_along_vectors;
    static constexpr bool along_k = Pattern == SimtCopyPattern::elements_along_k;
    static constexpr int vector_step = along_k ? simt_threads / Step::depth : 0;
    static constexpr int inner_step = along_k ? 0 : simt_threads * (chunks ? Step::chunk : 1) / Tile;
    static constexpr int count = Tile * Step::depth / simt_threads / (chunks ? Step::chunk : 1);
  };

  template <SimtCopyPattern Pattern>
  __device__ void begin_load(Step& step, int inner) {
    if (is_whole_ && inner == Step::depth) {
      load<Pattern, /*Whole=*/true>(step, inner - p_);
    } else {
      load<Pattern, /*Whole=*/false>(step, inner - p_);
    }
  }
  // Starts the thread's copies. `Whole`: all elements exist. `inner_left` is the number of inner indices that
  // are left from the thread's first one on.
  template <SimtCopyPattern Pattern, bool Whole>
  __device__ void load(Step& step, int inner_left) {
    using ThreadCopies = Copies<Pattern>;
    const std::int64_t source_step = ThreadCopies::along_k ? ThreadCopies::vector_step * matrix_.row_stride
                                                           : ThreadCopies::inner_step * matrix_.column_stride;
    T* target = step.at(0, 0) + offset_;
    const T* source = source_;
#pragma unroll
    for (int e = 0; e < ThreadCopies::count; ++e, source += source_step, target += target_step<Pattern>) {
      const int existing =
          e * ThreadCopies::inner_step < inner_left ? vectors_left_ - e * ThreadCopies::vector_step : 0;
      if constexpr (is_complex<T>) {
        element_[e] = Whole || existing > 0 ? *source : T(0);
        if (matrix_.conjugated) element_[e] = {element_[e].real(), -element_[e].imag()};
      } else if constexpr (!ThreadCopies::chunks) {
        copy_element(target, source, Whole || existing > 0);
      } else if (Whole || existing >= Step::chunk) {
        copy_aligned(target, source, 16);
      } else {
        copy_unaligned(target, source, existing * static_cast<int>(sizeof(T)));
      }
    }
  }
  // Stores the complex elements that load() has read into registers.
  template <SimtCopyPattern Pattern>
  __device__ void store(Step& step) const {
    T* target = step.at(0, 0) + offset_;
#pragma unroll
    for (int e = 0; e < Copies<Pattern>::count; ++e, target += target_step<Pattern>) *target = element_[e];
  }
  __device__ static void copy_element(T* target, const T* source, bool exists) {
    if constexpr (sizeof(T) == 4) {
      copy_4_bytes(shared_address(target), source, exists);
    } else {
      copy_8_bytes(shared_address(target), source, exists);
    }
  }
  template <SimtCopyPattern Pattern>
  static constexpr int target_step = Copies<Pattern>::inner_step* Step::pitch + Copies<Pattern>::vector_step;

  const DeviceMatrix& matrix_;
  const T* source_;
  SimtCopyPattern pattern_;
  bool is_whole_;     // true: the operand has all vectors of the tile
  int vectors_left_;  // number of vectors of the tile from the thread's first one on
  int p_;             // inner index of the thread's first element
  int offset_;        // offset of the thread's first element in a step
  T element_[is_complex<T> ? Tile * Step::depth / simt_threads : 1];  // complex elements being copied
};

// Sums of one thread. Its rows form groups that one access reads, and so do its columns. Neighboring threads
// have adjacent groups.
template <class T, int Tile>
class Sums {
 public:
  static constexpr int thread_side = Tile / simt_side;  // rows and columns of a thread

  // Row and column in the tile of the thread's e-th sum.
  __device__ static Position position(int e) {
    return {tile_index(row_thread(), e % thread_side), tile_index(column_thread(), e / thread_side)};
  }

  // Adds the products of inner index p of a step.
  __device__ void add(KTile<T, Tile>& a, KTile<T, Tile>& b, int p) {
    T x[thread_side];
    T y[thread_side];
    read(a, p, row_thread(), x);
    read(b, p, column_thread(), y);
#pragma unroll
    for (int c = 0; c < thread_side; ++c) {
#pragma unroll
      for (int r = 0; r < thread_side; ++r) add_product(sum_[c][r], x[r], y[c]);
    }
  }

  // Stores the thread's e-th sum at e * simt_threads + threadIdx.x.
  __device__ void store(T* stored) const {
#pragma unroll
    for (int e = 0; e < thread_side * thread_side; ++e)
      stored[e * simt_threads + threadIdx.x] = sum_[e / thread_side][e % thread_side];
  }

  // Writes the elements.
  __device__ void write(const MatrixView<T>& c, const Scalars<T>& scalars) const {
#pragma unroll
    for (int e = 0; e < thread_side * thread_side; ++e) {
      const Position at = position(e);
      if (at.row >= c.rows || at.column >= c.columns) continue;
      const T product = times(scalars.alpha, sum_[e / thread_side][e % thread_side]);
      T& element = c(at.row, at.column);
      element = scalars.beta == T(0) ? product : product + times(scalars.beta, element);
    }
  }

 private:
  // A warp has eight threads along the rows and four along the columns.
  __device__ static int row_thread() {
    return static_cast<int>(threadIdx.x) % 8 + static_cast<int>(threadIdx.x) / 32 % 2 * 8;
  }
  __device__ static int column_thread() {
    return static_cast<int>(threadIdx.x) / 8 % 4 + static_cast<int>(threadIdx.x) / 64 * 4;
  }

  static constexpr int access_length = std::min(KTile<T, Tile>::chunk, thread_side);  // elements per access
  static_assert(access_length * sizeof(T) == sizeof(int4) || access_length * sizeof(T) == sizeof(int2));
  using Access = std::conditional_t<access_length * sizeof(T) == sizeof(int4), int4, int2>;

  // Index in the tile of the r-th row or column of thread `thread` of a side.
  __device__ static int tile_index(int thread, int r) {
    return (r / access_length * simt_side + thread) * access_length + r % access_length;
  }

  __device__ static void read(KTile<T, Tile>& step, int p, int thread, T (&values)[thread_side]) {
#pragma unroll
    for (int r = 0; r < thread_side; r += access_length) {
      const Access access = *reinterpret_cast<const Access*>(step.at(p, tile_index(thread, r)));
      memcpy(&values[r], &access, sizeof access);
    }
  }

  T sum_[thread_side][thread_side] = {};
};

// The `count` inner indices from `first` on.
struct InnerRange {
  std::int64_t first;
  std::int64_t count;
};

// Adds the products over the inner indices `inner`, for the tile that begins at (first_row, first_column) of
// the region `tile` of C.
template <class T, int Tile>
__device__ void sum_up(const DeviceTile& tile, std::int64_t first_row, std::int64_t first_column,
                       const InnerRange& inner, KTiles<T, Tile>& tiles, Sums<T, Tile>& sums) {
  constexpr int depth = simt_depth<T>(Tile);
  Loader<T, Tile> a(tile.a, tile.first_row + first_row, tile.rows - first_row, inner.first);
  Loader<T, Tile> b(tile.b, tile.first_column + first_column, tile.columns - first_column, inner.first);
  const auto inner_of_step = [&](std::int64_t k) { return static_cast<int>(min(k, std::int64_t{depth})); };
  std::int64_t k_left = inner.count;
  int current = 0;
  a.begin_load(tiles.a[current], inner_of_step(k_left));
  b.begin_load(tiles.b[current], inner_of_step(k_left));
#pragma unroll 1
  for (; k_left > 0; k_left -= depth, current ^= 1) {
    a.end_load(tiles.a[current]);
    b.end_load(tiles.b[current]);
    __syncthreads();
    if (k_left < depth) {  // zeros after k are left out: they would turn a sum of -0 into +0
#pragma unroll 1
      for (int p = 0; p < k_left; ++p) sums.add(tiles.a[current], tiles.b[current], p);
      return;
    }
    // The copies of the two operands are issued apart, so that their instructions do not wait for each other.
    if (k_left > depth) a.begin_load(tiles.a[current ^ 1], inner_of_step(k_left - depth));
#pragma unroll
    for (int p = 0; p < depth / 2; ++p) sums.add(tiles.a[current], tiles.b[current], p);
    if (k_left > depth) b.begin_load(tiles.b[current ^ 1], inner_of_step(k_left - depth));
#pragma unroll
    for (int p = depth / 2; p < depth; ++p) sums.add(tiles.a[current], tiles.b[current], p);
  }
}

}  // namespace kintsugi::core::cuda
