// What the kernels of this folder share: matrices, scalars and the walk over a tile of C.
#pragma once

#include "arith/complex.hpp"
#include "base/embedding.hpp"
#include "engines/cuda/recombine/arguments.hpp"
#include "engines/device.hpp"
#include "recombine/special_entry.hpp"

namespace kintsugi::core::cuda {

__device__ inline bool holds(const DeviceCondition& condition) {
  return condition.choice == nullptr || condition.choice->rung == condition.rung;
}

template <class T>
__device__ MatrixView<T> view_of(const DeviceMatrix& matrix, std::int64_t entry) {
  T* data = matrix.pointers ? static_cast<T* const*>(const_cast<void*>(matrix.data))[entry]
                            : static_cast<T*>(const_cast<void*>(matrix.data)) + entry * matrix.batch_stride;
  return {data, matrix.rows, matrix.columns, matrix.row_stride, matrix.column_stride, MemorySpace::device};
}

template <class T>
__device__ OperandView<T> operand_view(const DeviceSide& side) {
  const MatrixView<const T> vectors = view_of<const T>(side.matrix, side.entry);
  if constexpr (is_complex<T>) {
    return {vectors, side.matrix.right, side.matrix.conjugated};
  } else {
    return vectors;
  }
}

template <class T>
__device__ T scalar(const std::complex<double>& value, const void* on_device) {
  if (on_device != nullptr) return *static_cast<const T*>(on_device);
  if constexpr (is_complex<T>) {
    return {static_cast<RealOf<T>>(value.real()), static_cast<RealOf<T>>(value.imag())};
  } else {
    return static_cast<T>(value.real());
  }
}

template <class T>
struct Scalars {
  T alpha;
  T beta;

  __device__ explicit Scalars(const DeviceScalars& scalars)
      : alpha(scalar<T>(scalars.alpha, scalars.device_alpha)),
        beta(scalar<T>(scalars.beta, scalars.device_beta)) {}
};

template <class T>
__device__ T scaled(const T& beta, const T& c) {
  return beta == T(0) ? T(0) : scaled_entry(beta, c);
}

// A block of threads takes a square of entries: a warp's lanes lie along a column, where sums lie beside each other.
inline constexpr int entries_each = square / lines;  // of one thread, in one row

// Where C's rows lie along memory, its entries go through shared memory, so that its lines are whole too.
template <class T>
class EntrySquare {
 public:
  __device__ EntrySquare(const MatrixView<T>& c, bool reads_c)
      : c_(c), by_rows_(c.column_stride < c.row_stride) {
    const std::int64_t blocks = divide_up(c.rows, square);
    first_row_ = blockIdx.x % blocks * square;
    first_column_ = blockIdx.x / blocks * square;
    if (!by_rows_) return;
    if (reads_c) for_each_staged([](T& staged, T& entry) { staged = entry; });
    __syncthreads();
  }

  __device__ std::int64_t row() const { return first_row_ + lane(); }
  __device__ std::int64_t column(int e) const { return first_column_ + line() + lines * e; }
  __device__ bool has(int e) const { return row() < c_.rows && column(e) < c_.columns; }
  // Of the thread's row and column e, where it is C's or a copy.
  __device__ T* entry(int e) const {
    return by_rows_ ? &staging()[lane() * (square + 1) + line() + lines * e] : &c_(row(), column(e));
  }

  // All threads together, after the last entry was written.
  __device__ void store() const {
    if (!by_rows_) return;
    __syncthreads();
    for_each_staged([](T& staged, T& entry) { entry = staged; });
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % square; }
  __device__ static int line() { return static_cast<int>(threadIdx.x) / square; }

  // As bytes: entries have constructors, shared memory has none.
  __device__ static T* staging() {
    alignas(16) __shared__ unsigned char bytes[square * (square + 1) * sizeof(T)];
    return reinterpret_cast<T*>(bytes);
  }

  template <class Visit>
  __device__ void for_each_staged(const Visit& visit) const {
    for (int r = line(); r < square; r += lines) {
      const std::int64_t i = first_row_ + r;
      const std::int64_t j = first_column_ + lane();
      if (i < c_.rows && j < c_.columns) visit(staging()[r * (square + 1) + lane()], c_(i, j));
    }
  }

  MatrixView<T> c_;
  bool by_rows_;
  std::int64_t first_row_;
  std::int64_t first_column_;
};

// The rare entries, out of the way of the others.
template <class T>
__device__ __noinline__ void put_special_entry(const DeviceTile& tile, std::int64_t i, std::int64_t j,
                                               T alpha, T beta, T* entry) {
  *entry = special_entry<T>(operand_view<T>(tile.a), operand_view<T>(tile.b), i, j, alpha, beta,
                            beta == T(0) ? nullptr : entry);
}

// One entry of beta C. A complex product of four terms is rounded once, which takes room that others do not need.
template <class T>
__device__ __noinline__ void put_scaled_entry(T beta, T* entry) {
  *entry = scaled(beta, *entry);
}

// Recombination::add_up gives the sums of `at_once` entries of one row, `write` makes an entry of one. Entries whose row
// or column has NaN or infinities, and those of alpha = 0, need no sums.
template <class T, class Recombination>
__device__ void recombine_tile(const DeviceTile& tile, const Recombination& recombination) {
  if (!holds(tile.condition)) return;
  const Scalars<T> scalars(tile.scalars);
  const bool scales = scalars.alpha == T(0);
  if (scales && scalars.beta == T(1)) return;
  const EntrySquare<T> entries(
      view_of<T>(tile.c, tile.entry).block(tile.first_row, tile.first_column, tile.rows, tile.columns),
      scalars.beta != T(0));
  const std::int64_t i = std::min(entries.row(), tile.rows - 1);
  const VectorRange* columns = tile.b.ranges + parts_of<T> * tile.first_column;
  const VectorRange& row = tile.a.ranges[tile.first_row + i];
  constexpr int at_once = Recombination::at_once;
#pragma unroll 1
  for (int first = 0; first < entries_each; first += at_once) {
    typename Recombination::Sums sums[at_once];
    std::int64_t j[at_once];
#pragma unroll
    for (int e = 0; e < at_once; ++e) j[e] = std::min(entries.column(first + e), tile.columns - 1);
    if (!scales) recombination.add_up(i, j, sums);
#pragma unroll
    for (int e = 0; e < at_once; ++e) {
      if (!entries.has(first + e)) continue;
      T* entry = entries.entry(first + e);
      if (scales) {
        put_scaled_entry(scalars.beta, entry);
      } else if (!row.finite() || !columns[parts_of<T> * j[e]].finite()) {
        put_special_entry(tile, tile.first_row + i, tile.first_column + j[e], scalars.alpha, scalars.beta,
                          entry);
      } else {
        recombination.write(sums[e], row.scale, columns + parts_of<T> * j[e], scalars, entry);
      }
    }
  }
  entries.store();
}

}  // namespace kintsugi::core::cuda
