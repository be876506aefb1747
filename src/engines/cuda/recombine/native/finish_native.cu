// Last step of products that the vendor library computed: it recomputes elements that underflow, overflow or
// special values may have spoiled. The host's counterpart is recombine/check/native_check.hpp. The host
// recomputes FP64 elements exactly; here each product in an FP64 sum is rounded (recomputed_element.cuh).
#include <cstring>

#include "arith/underflow.hpp"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/recombine/native/finish_task.hpp"
#include "engines/cuda/recombine/native/recomputed_element.cuh"

namespace kintsugi::core::cuda {

namespace {

constexpr int max_vectors = FinishTile::max_vectors;

// Ranges of the rows of A and columns of B of a tile of C; those of the rows come first. Magnitudes are the
// bits of FP64 numbers, which as integers have the same order.
struct TileRanges {
  static constexpr unsigned long long infinity = 0x7ff0000000000000ULL;

  // Bits of special[]: an element of the vector is infinite, or NaN.
  static constexpr unsigned int an_infinity = 1;
  static constexpr unsigned int a_nan = 2;

  unsigned long long least[max_vectors];    // smallest non-zero magnitudes; infinity if there are none
  unsigned long long largest[max_vectors];  // largest finite magnitudes
  unsigned int special[max_vectors];
  unsigned int needed[max_vectors];  // 1 if an unreliable sum belongs to the vector

  __device__ void clear() {
    for (int v = static_cast<int>(threadIdx.x); v < max_vectors; v += native_threads) {
      least[v] = infinity;
      largest[v] = 0;
      special[v] = needed[v] = 0;
    }
  }
};

// Smallest and largest magnitude among the elements of a vector that a thread has read.
struct VectorExtremes {
  unsigned long long least = TileRanges::infinity;
  unsigned long long largest = 0;
  unsigned int special = 0;

  template <class Real>
  __device__ void add(Real x) {
    const double magnitude = fabs(static_cast<double>(x));
    const auto bits = static_cast<unsigned long long>(__double_as_longlong(magnitude));
    if (bits >= TileRanges::infinity) {
      special |= bits > TileRanges::infinity ? TileRanges::a_nan : TileRanges::an_infinity;
    } else if (bits != 0) {
      least = min(least, bits);
      largest = max(largest, bits);
    }
  }
  template <class Real>
  __device__ void add(const Complex<Real>& x) {
    add(x.real());
    add(x.imag());
  }
  __device__ void add_to(TileRanges& ranges, int vector) const {
    atomicMin(&ranges.least[vector], least);
    atomicMax(&ranges.largest[vector], largest);
    if (special != 0) atomicOr(&ranges.special[vector], special);
  }
};

// One tile of the sums of a batch item, for a thread block. `item` is counted from the first item of the
// launch.
template <class T>
class NativeTile {
 public:
  using Real = RealOf<T>;

  __device__ NativeTile(const DeviceTile& tile, const DeviceMatrix& sums, const FinishTask& task,
                        TileRanges& ranges, std::int64_t item, std::int64_t tile_index)
      : tile_(tile), task_(task), ranges_(ranges), in_place_(sums.data == tile.c.data),
        scalars_(tile.scalars), item_(item) {
    lines_are_rows_ = tile.c.column_stride < tile.c.row_stride;
    const int rows_of_tile = lines_are_rows_ ? task.tile.lines : task.tile.line_length();
    const int columns_of_tile = lines_are_rows_ ? task.tile.line_length() : task.tile.lines;
    const std::int64_t row_of_sums = tile_index % task.tiles_of_rows * rows_of_tile;
    const std::int64_t column_of_sums = tile_index / task.tiles_of_rows * columns_of_tile;
    const std::int64_t rows = std::min<std::int64_t>(rows_of_tile, tile.rows - row_of_sums);
    const std::int64_t columns = std::min<std::int64_t>(columns_of_tile, tile.columns - column_of_sums);
    // Sums are in place only if `tile` is all of C; then their rows and columns are those of C. Other sums
    // begin with the first item and the first element of `tile`.
    const std::int64_t item_of_sums = (in_place_ ? tile.item : 0) + item;
    sums_ = view_of<T>(sums, item_of_sums).block(row_of_sums, column_of_sums, rows, columns);
    first_row_ = row_of_sums + tile.first_row;
    first_column_ = column_of_sums + tile.first_column;
    c_ = view_of<T>(tile.c, tile.item + item).block(first_row_, first_column_, rows, columns);
    min_sum_ = static_cast<Real>(task.min_sum);
    const int lines = static_cast<int>(lines_are_rows_ ? rows : columns);
    const int length = static_cast<int>(lines_are_rows_ ? columns : rows);
    // The thread tests every lines_at_once()-th line, from its first one on.
    element_count_ =
        position_in_line() < length ? divide_up(max(lines - line(0), 0), task.tile.lines_at_once()) : 0;
  }

  __device__ void finish() const {
    if (scalars_.alpha == T(0)) {
      if (scalars_.beta != T(1)) scale();
      return;
    }
    const unsigned int unreliable = write_reliable();
    if (is_nan(scalars_.alpha)) return write_unreliable(unreliable);  // all of them become NaN
    if (__syncthreads_or(unreliable != 0 ? 1 : 0) == 0) return;
    find_ranges(unreliable);
    const unsigned int still_unreliable = write_proved_by_ranges(unreliable);
    recompute(still_unreliable);
  }

 private:
  // Magnitude of alpha. For complex numbers it is an upper bound: the sum of the magnitudes of the two parts.
  __device__ double alpha_magnitude() const {
    if constexpr (is_complex<T>) {
      return fabs(double{scalars_.alpha.real()}) + fabs(double{scalars_.alpha.imag()});
    } else {
      return fabs(double{scalars_.alpha});
    }
  }

  // Position in its line, line, row and column in the tile of the thread's e-th element. The first
  // element_count_ elements exist. Lanes of a warp have neighboring elements of one line; a thread's elements
  // are lines_at_once() lines apart.
  __device__ int position_in_line() const {
    return static_cast<int>(threadIdx.x) & (task_.tile.line_length() - 1);
  }
  __device__ int line(int e) const {
    return (static_cast<int>(threadIdx.x) >> task_.tile.log2_line_length) + task_.tile.lines_at_once() * e;
  }
  __device__ int row(int e) const { return lines_are_rows_ ? line(e) : position_in_line(); }
  __device__ int column(int e) const { return lines_are_rows_ ? position_in_line() : line(e); }
  // Distance in memory between a thread's elements.
  __device__ std::int64_t step(const MatrixView<T>& matrix) const {
    return task_.tile.lines_at_once() * (lines_are_rows_ ? matrix.row_stride : matrix.column_stride);
  }

  __device__ void scale() const {
#pragma unroll 1
    for (int e = 0; e < element_count_; ++e) write_scaled_element(scalars_.beta, &c_(row(e), column(e)));
  }

  // True if the sum's magnitude shows that neither underflow nor overflow spoiled it.
  __device__ bool is_reliable(Real x) const {
    return fabs(x) >= min_sum_ && fabs(x) <= std::numeric_limits<Real>::max();
  }
  __device__ bool is_reliable(const Complex<Real>& x) const {
    return is_reliable(x.real()) && is_reliable(x.imag());
  }

  // Returns alpha times a sum plus beta C.
  __device__ T total(const T& sum, const T* old) const {
    const T product = times(scalars_.alpha, sum);
    return old == nullptr ? product : product + times(scalars_.beta, *old);
  }
  // Writes the thread's e-th element. If sums are in place, the sum already is the element.
  __device__ void write(int e, const T& sum) const {
    if (in_place_) return;
    T& c = c_(row(e), column(e));
    c = total(sum, scalars_.beta == T(0) ? nullptr : &c);
  }

  // Writes the elements whose sums are reliable. Returns a bit for each of the thread's other elements.
  __device__ unsigned int write_reliable() const {
    unsigned int unreliable = 0;
    if (in_place_ || scalars_.beta == T(0)) {
      constexpr int group = 64 / sizeof(T);
#pragma unroll 1
      for (int e = 0; e < element_count_; e += group) write_group<group, /*AddsBetaC=*/false>(e, unreliable);
    } else {
      constexpr int group = 16 / sizeof(T);
#pragma unroll 1
      for (int e = 0; e < element_count_; e += group) write_group<group, /*AddsBetaC=*/true>(e, unreliable);
    }
    return unreliable;
  }
  // Writes those of elements first ... first + Count - 1 whose sums are reliable, and sets the bits of all
  // others in `unreliable`. All loads of the group come before its stores, because the compiler may not move
  // loads across stores.
  template <int Count, bool AddsBetaC>
  __device__ void write_group(int first, unsigned int& unreliable) const {
    T sum[Count];
    T old[Count];
    const T* read = &sums_(row(first), column(first));
    T* written = &c_(row(first), column(first));
#pragma unroll
    for (int e = 0; e < Count; ++e) {
      if (first + e >= element_count_) continue;
      sum[e] = read[e * step(sums_)];
      if constexpr (AddsBetaC) old[e] = written[e * step(c_)];
    }
#pragma unroll
    for (int e = 0; e < Count; ++e) {
      if (first + e >= element_count_) continue;
      if (!is_reliable(sum[e])) {
        unreliable |= 1U << (first + e);
      } else if (AddsBetaC || !in_place_) {
        written[e * step(c_)] = total(sum[e], AddsBetaC ? &old[e] : nullptr);
      }
    }
  }

  // Writes the unreliable elements without recomputing them.
  __device__ void write_unreliable(unsigned int unreliable) const {
    for (; unreliable != 0; unreliable &= unreliable - 1) {
      const int e = __ffs(static_cast<int>(unreliable)) - 1;
      write(e, sums_(row(e), column(e)));
    }
  }

  // Finds the ranges of the vectors to which unreliable sums belong. All threads must call it together.
  __device__ void find_ranges(unsigned int unreliable) const {
    ranges_.clear();
    __syncthreads();
    for (; unreliable != 0; unreliable &= unreliable - 1) {
      const int e = __ffs(static_cast<int>(unreliable)) - 1;
      ranges_.needed[row(e)] = ranges_.needed[c_.rows + column(e)] = 1;
    }
    __syncthreads();
    find_ranges_of(tile_.a, first_row_, c_.rows, 0);
    find_ranges_of(tile_.b, first_column_, c_.columns, static_cast<int>(c_.rows));
    __syncthreads();
  }

  // Finds the needed ranges of vectors first ... first + count - 1 of an operand, and stores them in ranges_
  // from index `first_range` on. Lanes of a warp read neighboring elements in memory.
  __device__ void find_ranges_of(const DeviceSide& operand, std::int64_t first, std::int64_t count,
                                 int first_range) const {
    const MatrixView<const T> vectors = view_of<const T>(operand.matrix, operand.item + item_);
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    const int warp = static_cast<int>(threadIdx.x) / warp_size;
    constexpr int warps = native_threads / warp_size;
    if (vectors.column_stride < vectors.row_stride) {
      for (int v = warp; v < count; v += warps) {
        if (ranges_.needed[first_range + v] == 0) continue;
        VectorExtremes extremes;
        for (std::int64_t p = lane; p < vectors.columns; p += warp_size) extremes.add(vectors(first + v, p));
        extremes.add_to(ranges_, first_range + v);
      }
    } else {
      for (int v = lane; v < count; v += warp_size) {
        if (ranges_.needed[first_range + v] == 0) continue;
        VectorExtremes extremes;
        for (std::int64_t p = warp; p < vectors.columns; p += warps) extremes.add(vectors(first + v, p));
        extremes.add_to(ranges_, first_range + v);
      }
    }
  }

  __device__ static bool is_nan(Real x) { return x != x; }
  __device__ static bool is_nan(const Complex<Real>& x) { return is_nan(x.real()) && is_nan(x.imag()); }
  __device__ static bool is_finite(Real x) { return fabs(x) <= std::numeric_limits<Real>::max(); }
  __device__ static bool is_finite(const Complex<Real>& x) {
    return is_finite(x.real()) && is_finite(x.imag());
  }

  // True if the ranges of row i and column j of the tile prove the sum. A finite sum is proved if nothing
  // underflowed. A NaN is proved if an operand has a NaN; the sum alone proves nothing, since cuBLAS returns
  // NaN for some infinities as well.
  __device__ bool ranges_prove(const T& sum, int i, int j, double min_product) const {
    const int column_range = static_cast<int>(c_.rows) + j;
    const unsigned int special = ranges_.special[i] | ranges_.special[column_range];
    if (!is_finite(sum)) return (special & TileRanges::a_nan) != 0 && is_nan(sum);
    const double least = __longlong_as_double(static_cast<long long>(ranges_.least[i])) *
                         __longlong_as_double(static_cast<long long>(ranges_.least[column_range]));
    return special == 0 && least >= min_product;
  }

  // Writes those of the unreliable elements that the ranges of their vectors prove. Returns the bits of all
  // others.
  __device__ unsigned int write_proved_by_ranges(unsigned int unreliable) const {
    const double min_product = task_.min_product / fmin(alpha_magnitude(), 1.0);
    unsigned int still_unreliable = 0;
    for (; unreliable != 0; unreliable &= unreliable - 1) {
      const int e = __ffs(static_cast<int>(unreliable)) - 1;
      const T sum = sums_(row(e), column(e));
      if (ranges_prove(sum, row(e), column(e), min_product)) {
        write(e, sum);
      } else {
        still_unreliable |= 1U << e;
      }
    }
    return still_unreliable;
  }

  // Recomputes the unreliable elements of all threads of a warp, one element at a time. All lanes work on the
  // first element that is left of `source`, the first lane that has one.
  __device__ void recompute(unsigned int unreliable) const {
    DeviceSide a = tile_.a;
    DeviceSide b = tile_.b;
    a.item += item_;
    b.item += item_;
    const OperandView<T> view_a = operand_view<T>(a);
    const OperandView<T> view_b = operand_view<T>(b);
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
#pragma unroll 1
    for (unsigned int lanes_left = __ballot_sync(~0U, unreliable != 0); lanes_left != 0;
         lanes_left = __ballot_sync(~0U, unreliable != 0)) {
      const int source = __ffs(static_cast<int>(lanes_left)) - 1;
      const int e = __ffs(static_cast<int>(unreliable)) - 1;
      const int i = __shfl_sync(~0U, row(e), source);
      const int j = __shfl_sync(~0U, column(e), source);
      T& c = c_(i, j);
      const T* old = scalars_.beta == T(0) ? nullptr : &c;
      const T element = recomputed_element<T, warp_size>(view_a, view_b, first_row_ + i, first_column_ + j,
                                                         scalars_, old, lane);
      __syncwarp();
      if (lane == source) {
        c = element;
        unreliable &= unreliable - 1;
      }
    }
  }

  const DeviceTile& tile_;
  const FinishTask& task_;
  TileRanges& ranges_;
  bool in_place_;
  Scalars<T> scalars_;
  std::int64_t item_;
  std::int64_t first_row_;  // first row and column of the tile in the whole C
  std::int64_t first_column_;
  MatrixView<T> c_;
  MatrixView<T> sums_;
  Real min_sum_;
  bool lines_are_rows_;
  int element_count_;  // number of elements of the thread
};

// True if magnitudes, of operands or sums, prove all sums. All threads of the block call it together.
__device__ bool magnitudes_prove_sums(const FinishTask& task) {
  constexpr int warps = native_threads / warp_size;
  __shared__ double least[2][warps];  // of the records that each warp read: of A, of B
  __shared__ double largest[2][warps];
  const int thread = static_cast<int>(threadIdx.x);
  const MagnitudeRecord record = task.records[thread];
  if (__syncthreads_or(record.has_special != 0 ? 1 : 0) != 0) return false;
#pragma unroll
  for (int operand = 0; operand < 2; ++operand) {
    const bool is_of_operand = (thread < task.records_of_a) == (operand == 0);
    double low = is_of_operand ? record.least : std::numeric_limits<double>::infinity();
    double high = is_of_operand ? record.largest : 0;
#pragma unroll
    for (int distance = 1; distance < warp_size; distance *= 2) {
      low = fmin(low, __shfl_xor_sync(~0U, low, distance));
      high = fmax(high, __shfl_xor_sync(~0U, high, distance));
    }
    if (thread % warp_size == 0) {
      least[operand][thread / warp_size] = low;
      largest[operand][thread / warp_size] = high;
    }
  }
  __syncthreads();
  double low[2];
  double high[2];
#pragma unroll
  for (int operand = 0; operand < 2; ++operand) {
    low[operand] = least[operand][0];
    high[operand] = largest[operand][0];
#pragma unroll
    for (int warp = 1; warp < warps; ++warp) {
      low[operand] = fmin(low[operand], least[operand][warp]);
      high[operand] = fmax(high[operand], largest[operand][warp]);
    }
  }
  if (task.records_are_of_sums) return low[0] >= task.min_sum;
  return low[0] * low[1] >= task.min_proved_product && high[0] * high[1] <= task.max_proved_product;
}

template <class T>
__device__ void finish_tiles(const DeviceTile& tile, const DeviceMatrix& sums, const FinishTask& task) {
  launch_dependents();
  grid_dependency_wait();
  if (task.records != nullptr && magnitudes_prove_sums(task)) return;
  __shared__ TileRanges ranges;
#pragma unroll 1
  for (std::int64_t index = blockIdx.x; index < task.tiles; index += gridDim.x)
    NativeTile<T>(tile, sums, task, ranges, blockIdx.y, index).finish();
}

}  // namespace

// The launch bounds ask for two thread blocks per SM. Without them ptxas chooses three and spills registers
// on sm_80.
#define KINTSUGI_FINISH_NATIVE(name, T)                                                        \
  extern "C" __global__ void __launch_bounds__(native_threads, 2)                              \
      name(const __grid_constant__ DeviceTile tile, const __grid_constant__ DeviceMatrix sums, \
           const __grid_constant__ FinishTask task) {                                          \
    finish_tiles<T>(tile, sums, task);                                                         \
  }
KINTSUGI_FINISH_NATIVE(finish_native_f32, float)
KINTSUGI_FINISH_NATIVE(finish_native_f64, double)
KINTSUGI_FINISH_NATIVE(finish_native_c32, Complex<float>)
KINTSUGI_FINISH_NATIVE(finish_native_c64, Complex<double>)
#undef KINTSUGI_FINISH_NATIVE

}  // namespace kintsugi::core::cuda
