// Last step of products that the vendor library computed: elements that underflow, overflow or special values
// may have spoiled are recomputed. The host's counterpart is recombine/check/native_check.hpp, which sums
// FP64 elements exactly; here their products are rounded once each (recomputed_element.cuh).
#include <cstring>

#include "arith/underflow.hpp"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/recombine/native/finish_task.hpp"
#include "engines/cuda/recombine/native/recomputed_element.cuh"

namespace kintsugi::core::cuda {

namespace {

constexpr int max_vectors = FinishTile::max_vectors;

// Magnitudes of a tile's rows of A and columns of B, as the bits of FP64 numbers, which are ordered as
// integers are. The tile's rows come first.
struct TileRanges {
  static constexpr unsigned long long infinity = 0x7ff0000000000000ULL;

  static constexpr unsigned int an_infinity = 1;
  static constexpr unsigned int a_nan = 2;

  unsigned long long least[max_vectors];    // least magnitudes other than zero; infinity if there are none
  unsigned long long largest[max_vectors];  // largest finite magnitudes
  unsigned int special[max_vectors];        // bits: an element is infinite, an element is NaN
  unsigned int needed[max_vectors];         // 1 if the vector has an element of C whose sum is unreliable

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

template <class T>
class NativeTile {
 public:
  using Real = RealOf<T>;

  // `number`: tile of the batch item.
  __device__ NativeTile(const DeviceTile& tile, const DeviceMatrix& sums, const FinishTask& task,
                        TileRanges& ranges, std::int64_t item, std::int64_t number)
      : tile_(tile), task_(task), ranges_(ranges), in_place_(sums.data == tile.c.data),
        scalars_(tile.scalars), item_(item) {
    lines_are_rows_ = tile.c.column_stride < tile.c.row_stride;
    const int rows_of_tile = lines_are_rows_ ? task.tile.lines : task.tile.span();
    const int columns_of_tile = lines_are_rows_ ? task.tile.span() : task.tile.lines;
    first_row_ = number % task.tiles_of_rows * rows_of_tile;
    first_column_ = number / task.tiles_of_rows * columns_of_tile;
    const std::int64_t rows = std::min<std::int64_t>(rows_of_tile, tile.rows - first_row_);
    const std::int64_t columns = std::min<std::int64_t>(columns_of_tile, tile.columns - first_column_);
    sums_ =
        view_of<T>(sums, (in_place_ ? tile.item : 0) + item).block(first_row_, first_column_, rows, columns);
    first_row_ += tile.first_row;
    first_column_ += tile.first_column;
    c_ = view_of<T>(tile.c, tile.item + item).block(first_row_, first_column_, rows, columns);
    min_sum_ = static_cast<Real>(task.min_sum);
    const int lines = static_cast<int>(lines_are_rows_ ? rows : columns);
    const int length = static_cast<int>(lines_are_rows_ ? columns : rows);
    count_ = inside_line() < length ? divide_up(max(lines - line(0), 0), task.tile.lines_at_once()) : 0;
  }

  __device__ void finish() const {
    if (scalars_.alpha == T(0)) {
      if (scalars_.beta != T(1)) scale();
      return;
    }
    const unsigned int unreliable = write_reliable();
    if (is_nan(scalars_.alpha)) return write_all(unreliable);
    if (__syncthreads_or(unreliable != 0 ? 1 : 0) == 0) return;
    find_ranges(unreliable);
    recompute(accept_by_ranges(unreliable));
  }

 private:
  // Magnitude of alpha, or for complex numbers an upper bound of it: the sum of its parts' magnitudes.
  __device__ double alpha_magnitude() const {
    if constexpr (is_complex<T>) {
      return fabs(double{scalars_.alpha.real()}) + fabs(double{scalars_.alpha.imag()});
    } else {
      return fabs(double{scalars_.alpha});
    }
  }

  // Lanes of a warp have neighbors of one line, and a thread's elements are lines_at_once() lines apart; its
  // first count_ elements exist.
  __device__ int inside_line() const { return static_cast<int>(threadIdx.x) & (task_.tile.span() - 1); }
  __device__ int line(int e) const {
    return (static_cast<int>(threadIdx.x) >> task_.tile.log2_span) + task_.tile.lines_at_once() * e;
  }
  __device__ int row(int e) const { return lines_are_rows_ ? line(e) : inside_line(); }
  __device__ int column(int e) const { return lines_are_rows_ ? inside_line() : line(e); }
  __device__ std::int64_t step(const MatrixView<T>& matrix) const {
    return task_.tile.lines_at_once() * (lines_are_rows_ ? matrix.row_stride : matrix.column_stride);
  }

  __device__ void scale() const {
#pragma unroll 1
    for (int e = 0; e < count_; ++e) write_scaled_element(scalars_.beta, &c_(row(e), column(e)));
  }

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
  __device__ void write(int e, const T& sum) const {
    if (in_place_) return;
    T& c = c_(row(e), column(e));
    c = total(sum, scalars_.beta == T(0) ? nullptr : &c);
  }

  // Writes the elements whose sums are large enough to be right, and returns a bit for each of the others,
  // which are unreliable. All loads of a group come before its stores, across which the compiler may not move
  // loads.
  __device__ unsigned int write_reliable() const {
    unsigned int unreliable = 0;
    if (in_place_ || scalars_.beta == T(0)) {
      constexpr int group = 64 / sizeof(T);
#pragma unroll 1
      for (int e = 0; e < count_; e += group) write_group<group, false>(e, unreliable);
    } else {
      constexpr int group = 16 / sizeof(T);
#pragma unroll 1
      for (int e = 0; e < count_; e += group) write_group<group, true>(e, unreliable);
    }
    return unreliable;
  }
  // Writes elements first ... first + Count - 1 and sets the bits of unreliable sums in `unreliable`.
  // `Adds`: beta C is added to the products of sums that are not in place.
  template <int Count, bool Adds>
  __device__ void write_group(int first, unsigned int& unreliable) const {
    T sum[Count];
    T old[Count];
    const T* read = &sums_(row(first), column(first));
    T* written = &c_(row(first), column(first));
#pragma unroll
    for (int e = 0; e < Count; ++e) {
      if (first + e >= count_) continue;
      sum[e] = read[e * step(sums_)];
      if constexpr (Adds) old[e] = written[e * step(c_)];
    }
#pragma unroll
    for (int e = 0; e < Count; ++e) {
      if (first + e >= count_) continue;
      if (!is_reliable(sum[e])) {
        unreliable |= 1U << (first + e);
      } else if (Adds || !in_place_) {
        written[e * step(c_)] = total(sum[e], Adds ? &old[e] : nullptr);
      }
    }
  }

  // Writes the elements that write_reliable() left, for alpha = NaN, which makes each of them NaN.
  __device__ void write_all(unsigned int unreliable) const {
    for (; unreliable != 0; unreliable &= unreliable - 1) {
      const int e = __ffs(static_cast<int>(unreliable)) - 1;
      write(e, sums_(row(e), column(e)));
    }
  }

  // Finds the ranges of the vectors that unreliable sums belong to. All threads call it together.
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

  // Finds the ranges of vectors first ... first + count - 1 of an operand, which are vectors `number`,
  // number + 1, ... of ranges_. Lanes of a warp read neighbors in memory.
  __device__ void find_ranges_of(const DeviceSide& operand, std::int64_t first, std::int64_t count,
                                 int number) const {
    const MatrixView<const T> vectors = view_of<const T>(operand.matrix, operand.item + item_);
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    const int warp = static_cast<int>(threadIdx.x) / warp_size;
    constexpr int warps = native_threads / warp_size;
    if (vectors.column_stride < vectors.row_stride) {
      for (int v = warp; v < count; v += warps) {
        if (ranges_.needed[number + v] == 0) continue;
        VectorExtremes extremes;
        for (std::int64_t p = lane; p < vectors.columns; p += warp_size) extremes.add(vectors(first + v, p));
        extremes.add_to(ranges_, number + v);
      }
    } else {
      for (int v = lane; v < count; v += warp_size) {
        if (ranges_.needed[number + v] == 0) continue;
        VectorExtremes extremes;
        for (std::int64_t p = warp; p < vectors.columns; p += warps) extremes.add(vectors(first + v, p));
        extremes.add_to(ranges_, number + v);
      }
    }
  }

  __device__ static bool is_nan(Real x) { return x != x; }
  __device__ static bool is_nan(const Complex<Real>& x) { return is_nan(x.real()) && is_nan(x.imag()); }
  __device__ static bool is_finite(Real x) { return fabs(x) <= std::numeric_limits<Real>::max(); }
  __device__ static bool is_finite(const Complex<Real>& x) {
    return is_finite(x.real()) && is_finite(x.imag());
  }

  // True if the operands show that in a finite sum nothing underflowed, or that NaN is right. (cuBLAS returns
  // NaN for some infinities too.)
  __device__ bool is_valid(const T& sum, int i, int j, double min_product) const {
    const int v = static_cast<int>(c_.rows) + j;
    const unsigned int special = ranges_.special[i] | ranges_.special[v];
    if (!is_finite(sum)) return (special & TileRanges::a_nan) != 0 && is_nan(sum);
    const double least = __longlong_as_double(static_cast<long long>(ranges_.least[i])) *
                         __longlong_as_double(static_cast<long long>(ranges_.least[v]));
    return special == 0 && least >= min_product;
  }

  // Writes the elements that their vectors' ranges prove, and returns a bit for each of the others.
  __device__ unsigned int accept_by_ranges(unsigned int unreliable) const {
    const double min_product = task_.min_product / fmin(alpha_magnitude(), 1.0);
    unsigned int still_unreliable = 0;
    for (; unreliable != 0; unreliable &= unreliable - 1) {
      const int e = __ffs(static_cast<int>(unreliable)) - 1;
      const T sum = sums_(row(e), column(e));
      if (is_valid(sum, row(e), column(e), min_product)) {
        write(e, sum);
      } else {
        still_unreliable |= 1U << e;
      }
    }
    return still_unreliable;
  }

  // Recomputes the elements of a warp's threads one after the other, with all lanes together.
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
  std::int64_t first_row_;  // row and column of C where the tile begins
  std::int64_t first_column_;
  MatrixView<T> c_;
  MatrixView<T> sums_;
  Real min_sum_;
  bool lines_are_rows_;
  int count_;
};

// True if the operands' magnitudes prove all sums. All threads of the block call it together.
__device__ bool operands_prove_sums(const FinishTask& task) {
  constexpr int warps = native_threads / warp_size;
  __shared__ double least[2][warps];
  __shared__ double largest[2][warps];
  const int thread = static_cast<int>(threadIdx.x);
  const Magnitudes own = task.records[thread];
  if (__syncthreads_or(own.has_special != 0 ? 1 : 0) != 0) return false;
#pragma unroll
  for (int operand = 0; operand < 2; ++operand) {
    const bool is_of_operand = (thread < task.records_of_a) == (operand == 0);
    double low = is_of_operand ? own.least : std::numeric_limits<double>::infinity();
    double high = is_of_operand ? own.largest : 0;
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
  return low[0] * low[1] >= task.min_proved_product && high[0] * high[1] <= task.max_proved_product;
}

template <class T>
__device__ void finish_tiles(const DeviceTile& tile, const DeviceMatrix& sums, const FinishTask& task) {
  launch_dependents();
  grid_dependency_wait();
  if (task.records != nullptr && operands_prove_sums(task)) return;
  __shared__ TileRanges ranges;
#pragma unroll 1
  for (std::int64_t number = blockIdx.x; number < task.tiles; number += gridDim.x)
    NativeTile<T>(tile, sums, task, ranges, blockIdx.y, number).finish();
}

}  // namespace

// Two thread blocks per SM at least: with its own choice, of three, ptxas spills registers on sm_80.
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
