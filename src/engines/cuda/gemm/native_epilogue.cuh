// Epilogue of native products by the library's kernels. It applies alpha and beta, and recomputes the
// elements that underflow, overflow or special values may have spoiled.
#pragma once

#include <cstdint>
#include <limits>

#include "arith/underflow.hpp"
#include "engines/cuda/recombine/native/recomputed_element.cuh"

namespace kintsugi::core::cuda {

// True if each part of a sum is finite and so large that the contract allows for a possible loss by underflow
// (arith/underflow.hpp).
template <class Real>
__device__ bool is_reliable(Real sum, Real min_sum) {
  return fabs(sum) >= min_sum && fabs(sum) <= std::numeric_limits<Real>::max();
}
template <class Real>
__device__ bool is_reliable(const Complex<Real>& sum, Real min_sum) {
  return is_reliable(sum.real(), min_sum) && is_reliable(sum.imag(), min_sum);
}

// True if the ranges of a row and a column prove two things: the sum of their products does not overflow, and
// the contract allows for what it may lose to underflow. (cannot_underflow_or_overflow() in recombine/checked
// is stricter: no product may lose a bit.)
template <class Real>
__device__ bool is_reliable_by_ranges(const VectorRange& row, const VectorRange& column,
                                      std::int64_t products) {
  if (!row.finite() || !column.finite()) return false;
  if (((row.flags | column.flags) & VectorRange::all_zero) != 0) return true;
  const double limit = underflow_limits<Real>(products).product;
  const int sum_bits = 64 - leading_zeros(static_cast<std::uint64_t>(products));
  // An element of exponent e is below 2^(e + 1).
  return row.smallest + column.smallest > exponent_of(limit) &&
         row.largest + column.largest + 2 + sum_bits < std::numeric_limits<Real>::max_exponent;
}

// Ranges of the thread block's batch item; nullptr if they are not known.
__device__ inline const VectorRange* ranges_of(const DeviceSide& side, std::int64_t vectors) {
  return side.ranges == nullptr ? nullptr : side.ranges + (side.items == 1 ? 0 : blockIdx.y * vectors);
}

// Joins the ranges of `count` vectors, `step` ranges apart. All lanes of a warp must call it together; all
// get the result.
__device__ inline VectorRange joined_range(const VectorRange* ranges, std::int64_t count, int step) {
  constexpr int lanes = 32;
  VectorRange joined;
  std::uint32_t non_zero = 0;
#pragma unroll 1
  for (std::int64_t v = threadIdx.x % lanes; v < count; v += lanes) {
    const VectorRange& range = ranges[v * step];
    joined.flags |= range.flags;
    if ((range.flags & VectorRange::all_zero) != 0) continue;
    non_zero = VectorRange::all_zero;
    joined.smallest = min(joined.smallest, range.smallest);
    joined.largest = max(joined.largest, range.largest);
  }
  joined.smallest = __reduce_min_sync(~0U, joined.smallest);
  joined.largest = __reduce_max_sync(~0U, joined.largest);
  joined.flags = __reduce_or_sync(~0U, joined.flags) & ~__reduce_or_sync(~0U, non_zero);
  return joined;
}

// True if the ranges of all vectors of a part of C prove all of its sums (is_reliable_by_ranges). The part
// begins at (row, column) of C. All lanes of a warp must call it together.
template <class T>
__device__ bool ranges_prove_part(const DeviceTile& tile, std::int64_t row, std::int64_t column,
                                  std::int64_t rows, std::int64_t columns) {
  const std::int64_t products = parts_of<T> * tile.a.matrix.columns;
  const VectorRange* ranges_a = ranges_of(tile.a, tile.a.matrix.rows);
  const VectorRange* ranges_b = ranges_of(tile.b, parts_of<T> * tile.b.matrix.rows);
  if (ranges_a == nullptr || ranges_b == nullptr) return false;
  return is_reliable_by_ranges<RealOf<T>>(joined_range(ranges_a + row, rows, 1),
                                          joined_range(ranges_b + parts_of<T> * column, columns, parts_of<T>),
                                          products);
}

template <class T>
__device__ T nan_element() {
  constexpr RealOf<T> nan = std::numeric_limits<RealOf<T>>::quiet_NaN();
  if constexpr (is_complex<T>) {
    return {nan, nan};
  } else {
    return nan;
  }
}

// True if the thread block's part of C needs no product: it becomes NaN if no candidate was selected, and
// beta C if alpha is 0.
template <class T>
__device__ bool needs_no_product(const DeviceCondition& condition, const Scalars<T>& scalars) {
  return scalars.alpha == T(0) ||
         (condition.selection != nullptr && condition.candidate == DeviceSelection::none);
}
// Writes a part of C for which needs_no_product() is true. Threads 0 ... threads - 1 share the elements.
template <class T>
__device__ void write_without_product(const DeviceCondition& condition, const Scalars<T>& scalars,
                                      const MatrixView<T>& c, int threads) {
  // needs_no_product() has the same condition. It is repeated here, because a common function would change
  // the order of instructions in all SIMT kernels.
  const bool nothing_selected =
      condition.selection != nullptr && condition.candidate == DeviceSelection::none;
  if (!nothing_selected && scalars.beta == T(1)) return;  // 1 * NaN would lose the NaN's bits
  const auto rows = static_cast<int>(c.rows);
  const auto columns = static_cast<int>(c.columns);
  for (int e = static_cast<int>(threadIdx.x); e < rows * columns; e += threads) {
    T& element = c(e % rows, e / rows);
    if (nothing_selected) {
      element = nan_element<T>();
    } else {
      element = scalars.beta == T(0) ? T(0) : times(scalars.beta, element);
    }
  }
}

// Row and column of an element in a thread block's part of C.
struct Position {
  int row;
  int column;
};

// Sums of a thread, with a bit for each sum.
struct UnreliableSums {
  std::uint64_t unreliable = 0;  // sums that are not reliable
  std::uint64_t zeros = 0;       // sums that are zero
};

// Replaces an element, which has the old C, by the result for a sum that is zero, as ranges prove. Sums that
// are zero are +0. Returns false and does nothing if alpha times such a sum is not zero.
template <class T>
__device__ bool add_zero_sum(const Scalars<T>& scalars, T& element) {
  if (!(times(scalars.alpha, T(0)) == T(0))) return false;
  if constexpr (is_complex<T>) {
    element = epilogue(Complex<double>(0, 0), scalars.alpha, scalars.beta, &element);
  } else {
    element = epilogue(0.0, scalars.alpha, scalars.beta, &element);
  }
  return true;
}

// Recomputes the elements of a thread's unreliable sums, unless ranges prove the sums. The thread itself
// computes them. `c` begins at (row, column) of C. position_of(bit) must be the Position in `c` of the
// element of a bit.
template <class T, class PositionOf>
__device__ void recompute_unreliable(const DeviceTile& tile, std::int64_t row, std::int64_t column,
                                     const MatrixView<T>& c, const Scalars<T>& scalars,
                                     const UnreliableSums& sums, const PositionOf& position_of) {
  DeviceSide a = tile.a;
  DeviceSide b = tile.b;
  a.item += blockIdx.y;
  b.item += blockIdx.y;
  const OperandView<T> view_a = operand_view<T>(a);
  const OperandView<T> view_b = operand_view<T>(b);
  const VectorRange* rows = ranges_of(tile.a, view_a.rows);
  const VectorRange* columns = ranges_of(tile.b, view_b.rows);
  const bool adds_beta_c = scalars.beta != T(0);
#pragma unroll 1
  for (std::uint64_t bits = sums.unreliable; bits != 0; bits &= bits - 1) {
    const int bit = __ffsll(static_cast<long long>(bits)) - 1;
    const Position at = position_of(bit);
    T& element = c(at.row, at.column);
    const bool is_proved =
        rows != nullptr && columns != nullptr &&
        is_reliable_by_ranges<RealOf<T>>(rows[row + at.row], columns[parts_of<T> * (column + at.column)],
                                         view_a.columns);
    // With beta = 0 the kernel has written the elements of unreliable sums, too. With another beta these
    // elements still have the old C. Sums of zero are treated apart, because operands with many zeros, such
    // as triangular matrices, have many of them.
    if (is_proved && !adds_beta_c) continue;
    if (is_proved && (sums.zeros >> bit & 1) != 0 && add_zero_sum(scalars, element)) continue;
    constexpr int lanes = 1;
    constexpr int lane = 0;
    element = recomputed_element<T, lanes>(view_a, view_b, row + at.row, column + at.column, scalars,
                                           adds_beta_c ? &element : nullptr, lane);
  }
}

}  // namespace kintsugi::core::cuda
