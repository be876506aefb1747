// Views of the caller's matrices and of blocks of them.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include "blas/call.hpp"

namespace kintsugi::blas {

template <class T>
struct RealOf {
  using type = T;
};
template <class Real>
struct RealOf<std::complex<Real>> {
  using type = Real;
};
template <class T>
using Real = typename RealOf<T>::type;

template <class T>
constexpr bool is_complex_element = !std::is_same_v<Real<T>, T>;

template <class T>
T conjugate(const T& x) {
  if constexpr (is_complex_element<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}

// View of a column-major matrix, possibly transposed or conjugated. An operand of a product may be conjugated
// only if it is transposed, too (op = C).
template <class T>
struct View {
  T* data = nullptr;
  std::int64_t ld = 1;
  std::int64_t rows = 0, columns = 0;  // size of the view
  bool is_transposed = false;
  bool is_conjugated = false;

  // Returns the element in memory, not conjugated. value() returns the view's element.
  T& at(std::int64_t i, std::int64_t j) const { return is_transposed ? data[j + i * ld] : data[i + j * ld]; }
  std::remove_const_t<T> value(std::int64_t i, std::int64_t j) const {
    return is_conjugated ? conjugate<std::remove_const_t<T>>(at(i, j)) : at(i, j);
  }

  View block(std::int64_t i, std::int64_t j, std::int64_t block_rows, std::int64_t block_columns) const {
    View part = *this;
    part.data = data == nullptr ? nullptr : data + (is_transposed ? j + i * ld : i + j * ld);
    part.rows = block_rows;
    part.columns = block_columns;
    return part;
  }
  View rows_from_to(std::int64_t first, std::int64_t end) const {
    return block(first, 0, end - first, columns);
  }
  View columns_from_to(std::int64_t first, std::int64_t end) const {
    return block(0, first, rows, end - first);
  }

  View transposed() const {
    View other = *this;
    other.rows = columns;
    other.columns = rows;
    other.is_transposed = !is_transposed;
    return other;
  }

  operator View<const T>() const { return {data, ld, rows, columns, is_transposed, is_conjugated}; }
};

// Returns the view op(matrix), which has `rows` x `columns` elements.
template <class T>
View<const T> operand(Op op, const void* data, std::int64_t ld, std::int64_t rows, std::int64_t columns) {
  return {static_cast<const T*>(data), ld, rows, columns, op != Op::n, op == Op::c && is_complex_element<T>};
}

// Numbers of blocks into which the diagonal of a triangle is cut. Half of the work on a diagonal block is
// wasted, since the block is multiplied in full; this asks for many blocks. Neighbouring blocks split the
// same operands again; this asks for few blocks. Times measured with 1, 2, 4 and 8 blocks, relative to one
// full product: syrk 1.01, 0.92, 0.98, 1.19; trmm 1.69, 1.36, 1.38, 1.20 (FP64 by residues, one core of a Zen
// 5, n = 1024).
constexpr std::int64_t blocks_of_update = 2;
constexpr std::int64_t blocks_of_triangular = 8;

// Returns the rows of one block, at least 64. In smaller products the fixed cost of a call dominates.
inline std::int64_t block_size(std::int64_t dimension, std::int64_t blocks) {
  return std::max<std::int64_t>(64, (dimension + blocks - 1) / blocks);
}

}  // namespace kintsugi::blas
