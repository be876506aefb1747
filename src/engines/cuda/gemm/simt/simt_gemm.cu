// Native products by SIMT kernels: every sum in ascending k, by fused multiply-add in the elements' own
// arithmetic.
#include <type_traits>

#include "engines/cuda/gemm/native_epilogue.cuh"
#include "engines/cuda/gemm/simt/simt_tiles.hpp"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/select_by_block.cuh"

namespace kintsugi::core::cuda {

namespace {

__device__ float fused(float x, float y, float sum) { return __fmaf_rn(x, y, sum); }
__device__ double fused(double x, double y, double sum) { return __fma_rn(x, y, sum); }

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

// One step of k: `depth` inner indices of a tile's vectors. Padded against bank conflicts of writes along k.
template <class T, int Tile>
struct KTile {
  static constexpr int tile = Tile;
  static constexpr int depth = simt_depth<T>(Tile);
  static constexpr int together =
      std::min(16 / static_cast<int>(sizeof(T)), Tile / simt_side);  // elements of a vector access

  alignas(16) unsigned char bytes[depth * (tile + together) * sizeof(T)];

  __device__ T* at(int p, int vector) { return reinterpret_cast<T*>(bytes) + p * (tile + together) + vector; }
};

// Elements that a thread loads for every step; neighboring lanes load what is contiguous in memory.
template <class T, int Tile>
class Loader {
 public:
  static constexpr int tile = Tile;
  static constexpr int depth = simt_depth<T>(Tile);
  static constexpr int count = tile * depth / simt_threads;

  __device__ Loader(const DeviceSide& side, std::int64_t first, std::int64_t vectors)
      : k_left_(side.matrix.columns), conjugated_(side.matrix.conjugated) {
    const MatrixView<const T> view = view_of<const T>(side.matrix, side.item + blockIdx.y);
    const auto thread = static_cast<int>(threadIdx.x);
    const bool along_k = view.column_stride < view.row_stride;
    vector_ = along_k ? thread / depth : thread % tile;
    p_ = along_k ? thread % depth : thread / tile;
    vector_step_ = along_k ? simt_threads / depth : 0;
    p_step_ = along_k ? 0 : simt_threads / tile;
    vectors_left_ = static_cast<int>(std::min<std::int64_t>(vectors, tile)) - vector_;
    k_step_ = depth * view.column_stride;
    step_ = vector_step_ * view.row_stride + p_step_ * view.column_stride;
    source_ = view.data + (first + vector_) * view.row_stride + p_ * view.column_stride;
  }

  // Loads the elements of the next step, zeros beyond the operand.
  __device__ void load() {
    const int there_along_k = static_cast<int>(std::min<std::int64_t>(k_left_, depth)) - p_;
#pragma unroll
    for (int e = 0; e < count; ++e) {
      const bool there = e * vector_step_ < vectors_left_ && e * p_step_ < there_along_k;
      element_[e] = there ? source_[e * step_] : T(0);
      if constexpr (is_complex<T>) {
        if (conjugated_) element_[e] = {element_[e].real(), -element_[e].imag()};
      }
    }
    source_ += k_step_;
    k_left_ -= depth;
  }
  __device__ void store(KTile<T, Tile>& step) const {
#pragma unroll
    for (int e = 0; e < count; ++e) *step.at(p_ + e * p_step_, vector_ + e * vector_step_) = element_[e];
  }

 private:
  const T* source_;
  std::int64_t step_;    // from one element of the thread to the next
  std::int64_t k_step_;  // from one step of k to the next
  std::int64_t k_left_;  // inner indices left
  bool conjugated_;
  int vectors_left_;
  int vector_, p_, vector_step_, p_step_;
  T element_[count];
};

// Sums of one thread, for `each` rows and columns, in groups of `together` that one access reads; neighboring
// threads have neighboring groups.
template <class T, int Tile>
class Sums {
 public:
  static constexpr int each = Tile / simt_side;
  static constexpr int together = KTile<T, Tile>::together;

  // Row or column of the tile that is number r of the thread's own.
  __device__ static int tile_index(int thread, int r) {
    return (r / together * simt_side + thread) * together + r % together;
  }
  __device__ static int row_thread() { return static_cast<int>(threadIdx.x) % simt_side; }
  __device__ static int column_thread() { return static_cast<int>(threadIdx.x) / simt_side; }

  __device__ void add(KTile<T, Tile>& a, KTile<T, Tile>& b, int p) {
    T x[each];
    T y[each];
    read(a, p, row_thread(), x);
    read(b, p, column_thread(), y);
#pragma unroll
    for (int c = 0; c < each; ++c) {
#pragma unroll
      for (int r = 0; r < each; ++r) add_product(sum_[c][r], x[r], y[c]);
    }
  }

  // Writes the elements and returns a bit for each whose sum needs recomputing; with beta != 0 such elements
  // are left as they are.
  __device__ std::uint64_t write(const MatrixView<T>& c, const Scalars<T>& scalars, RealOf<T> min_sum) const {
    std::uint64_t open = 0;
#pragma unroll
    for (int s = 0; s < each; ++s) {
#pragma unroll
      for (int r = 0; r < each; ++r) {
        const int i = tile_index(row_thread(), r);
        const int j = tile_index(column_thread(), s);
        if (i >= c.rows || j >= c.columns) continue;
        if (!is_reliable(sum_[s][r], min_sum)) {
          open |= std::uint64_t{1} << (s * each + r);
          if (scalars.beta != T(0)) continue;
        }
        const T product = times(scalars.alpha, sum_[s][r]);
        T& element = c(i, j);
        element = scalars.beta == T(0) ? product : product + times(scalars.beta, element);
      }
    }
    return open;
  }

 private:
  static_assert(each * each <= 64);
  static_assert(together * sizeof(T) == sizeof(int4) || together * sizeof(T) == sizeof(int2));
  using Run = std::conditional_t<together * sizeof(T) == sizeof(int4), int4, int2>;

  __device__ static void read(KTile<T, Tile>& step, int p, int thread, T (&values)[each]) {
#pragma unroll
    for (int r = 0; r < each; r += together) {
      const Run run = *reinterpret_cast<const Run*>(step.at(p, tile_index(thread, r)));
      memcpy(&values[r], &run, sizeof run);
    }
  }

  T sum_[each][each] = {};
};

template <class T, int Tile>
__device__ void sum_up(const DeviceTile& tile, std::int64_t first_row, std::int64_t first_column,
                       Sums<T, Tile>& sums) {
  __shared__ KTile<T, Tile> tile_a, tile_b;
  Loader<T, Tile> a(tile.a, tile.first_row + first_row, tile.rows - first_row);
  Loader<T, Tile> b(tile.b, tile.first_column + first_column, tile.columns - first_column);
  constexpr int depth = simt_depth<T>(Tile);
  const std::int64_t k = tile.a.matrix.columns;
  a.load();
  b.load();
  for (std::int64_t first = 0; first < k; first += depth) {
    a.store(tile_a);
    b.store(tile_b);
    __syncthreads();
    a.load();
    b.load();
    if (k - first >= depth) {
#pragma unroll
      for (int p = 0; p < depth; ++p) sums.add(tile_a, tile_b, p);
    } else {  // no zeros are added past k: they would turn a sum of -0 into +0
#pragma unroll 1
      for (int p = 0; p < k - first; ++p) sums.add(tile_a, tile_b, p);
    }
    __syncthreads();
  }
}

// Computes the thread block's tile of C; the kernels before this one have finished.
template <class T, int Tile>
__device__ void multiply_tile(const DeviceTile& tile) {
  constexpr int side = Tile;
  const std::int64_t blocks = divide_up(tile.rows, side);
  const std::int64_t first_row = blockIdx.x % blocks * side;
  const std::int64_t first_column = blockIdx.x / blocks * side;
  const MatrixView<T> c = view_of<T>(tile.c, tile.item + blockIdx.y)
                              .block(tile.first_row + first_row, tile.first_column + first_column,
                                     std::min<std::int64_t>(side, tile.rows - first_row),
                                     std::min<std::int64_t>(side, tile.columns - first_column));
  const Scalars<T> scalars(tile.scalars);
  if (needs_no_product(tile.condition, scalars))
    return write_without_product(tile.condition, scalars, c, simt_threads);
  Sums<T, Tile> sums;
  sum_up(tile, first_row, first_column, sums);
  const auto min_sum =
      static_cast<RealOf<T>>(underflow_limits<RealOf<T>>(parts_of<T> * tile.a.matrix.columns).sum);
  using TileSums = Sums<T, Tile>;
  recompute_open_elements(tile, tile.first_row + first_row, tile.first_column + first_column, c, scalars,
                          sums.write(c, scalars, min_sum), [](int e) {
                            return Position{
                                TileSums::tile_index(TileSums::row_thread(), e % TileSums::each),
                                TileSums::tile_index(TileSums::column_thread(), e / TileSums::each)};
                          });
}

template <class T, int Tile>
__device__ void multiply_tile_if_selected(const DeviceTile& tile) {
  launch_dependents();
  if (tile.condition.selected_earlier && !holds(tile.condition, blockIdx.y)) return exit_in_stream_order();
  grid_dependency_wait();
  if (holds(tile.condition, blockIdx.y)) multiply_tile<T, Tile>(tile);
}

// Selects the candidate of the thread block's batch item and, if that is the tile's, computes the tile. Every
// thread block of an item selects, and finds the same; the first one stores the selection and reports it. The
// kernel before this one, a product, has waited for the ranges, so they are read before the grid-dependency
// wait.
template <int Tile>
__device__ void select_or_multiply(const DeviceTile& tile, const SelectionTask& task) {
  __shared__ bool selected;
  launch_dependents();
  const std::int64_t item = blockIdx.y;
  DeviceSelection selection;
  select_by_block<simt_threads>(task, item, selection, [] { return 0U; });
  if (threadIdx.x == 0) {
    selected = selection.candidate == tile.condition.candidate;
    if (blockIdx.x == 0) {
      task.selection[item] = selection;
      if (task.reporting.report != nullptr) report(task.reporting, selection, false);
    }
  }
  __syncthreads();
  if (!selected) return exit_in_stream_order();
  grid_dependency_wait();
  multiply_tile<float, Tile>(tile);
}

}  // namespace

// Thread blocks per SM at least. Two leave simt_f32 too few registers on sm_80, where ptxas spills 13.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr int blocks_f32 = 1;
#else
constexpr int blocks_f32 = 2;
#endif

#define KINTSUGI_SIMT(name, T, tile, blocks)                         \
  extern "C" __global__ void __launch_bounds__(simt_threads, blocks) \
      name(const __grid_constant__ DeviceTile device_tile) {         \
    multiply_tile_if_selected<T, tile>(device_tile);                 \
  }
KINTSUGI_SIMT(simt_f32_128, float, 128, blocks_f32)
KINTSUGI_SIMT(simt_f32_64, float, 64, 2)
KINTSUGI_SIMT(simt_f32_32, float, 32, 2)
KINTSUGI_SIMT(simt_f64_128, double, 128, 1)
KINTSUGI_SIMT(simt_f64_64, double, 64, 2)
KINTSUGI_SIMT(simt_f64_32, double, 32, 2)
KINTSUGI_SIMT(simt_c32_64, Complex<float>, 64, 2)
KINTSUGI_SIMT(simt_c32_32, Complex<float>, 32, 2)
KINTSUGI_SIMT(simt_c64_64, Complex<double>, 64, 1)
KINTSUGI_SIMT(simt_c64_32, Complex<double>, 32, 2)
#undef KINTSUGI_SIMT

#define KINTSUGI_SELECT_OR_SIMT(name, tile, blocks)                                                      \
  extern "C" __global__ void __launch_bounds__(simt_threads, blocks) name(                               \
      const __grid_constant__ DeviceTile device_tile, const __grid_constant__ SelectionTask selection) { \
    select_or_multiply<tile>(device_tile, selection);                                                    \
  }
KINTSUGI_SELECT_OR_SIMT(select_or_simt_f32_128, 128, blocks_f32)
KINTSUGI_SELECT_OR_SIMT(select_or_simt_f32_64, 64, 2)
KINTSUGI_SELECT_OR_SIMT(select_or_simt_f32_32, 32, 2)
#undef KINTSUGI_SELECT_OR_SIMT

}  // namespace kintsugi::core::cuda
