// Views of one batch item's operands.
#pragma once

#include "base/embedding.hpp"
#include "execute/execute.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

// Returns the pointer to the matrix of a batch item.
template <class T>
const T* batch_pointer(const void* data, BatchKind kind, std::int64_t stride, std::int64_t item) {
  if (kind == BatchKind::pointers) return static_cast<const T* const*>(data)[item];
  return static_cast<const T*>(data) + item * stride;
}

// Returns the prepared operand of a batch item; nullptr if the operand is not prepared.
inline const Prepared::Item* prepared_item(const Prepared* prepared, std::int64_t item) {
  if (prepared == nullptr) return nullptr;
  return &prepared->items[prepared->items.size() == 1 ? 0 : static_cast<std::size_t>(item)];
}

// Returns the view that the steps read of a matrix of vectors x k: for complex elements the embedding.
template <class T>
OperandView<T> operand_view(const MatrixView<const T>& vectors, Side side, bool conjugated) {
  if constexpr (is_complex<T>) {
    return {vectors, side == Side::b, conjugated};
  } else {
    return vectors;
  }
}

// Returns the dense copy of a prepared operand, vectors x k.
template <class T>
OperandView<T> view_of_copy(const Prepared& prepared, std::int64_t item) {
  const Prepared::Item& copied = *prepared_item(&prepared, item);
  return operand_view<T>({static_cast<const T*>(copied.copy.pointer()), prepared.vectors, prepared.k,
                          copied.vector_stride, copied.element_stride},
                         prepared.side, prepared.conjugated);
}

// Returns the m x k matrix op(A): the prepared copy if there is one, else the caller's matrix.
template <class T>
OperandView<T> view_of_a(const Problem& problem, const void* data, const Prepared* prepared,
                         std::int64_t item) {
  if (prepared != nullptr) return view_of_copy<T>(*prepared, item);
  return operand_view<T>(matrix_view(batch_pointer<T>(data, problem.batch_kind, problem.stride_a, item),
                                     problem.layout, problem.op_a, problem.m, problem.k, problem.lda),
                         Side::a, problem.op_a == Op::conjugate_transpose);
}

// Returns the n x k matrix op(B)^T, whose rows are the columns of op(B): the prepared copy if there is one,
// else the caller's matrix.
template <class T>
OperandView<T> view_of_b(const Problem& problem, const void* data, const Prepared* prepared,
                         std::int64_t item) {
  if (prepared != nullptr) return view_of_copy<T>(*prepared, item);
  return operand_view<T>(matrix_view(batch_pointer<T>(data, problem.batch_kind, problem.stride_b, item),
                                     problem.layout, problem.op_b, problem.k, problem.n, problem.ldb)
                             .transposed(),
                         Side::b, problem.op_b == Op::conjugate_transpose);
}

// Returns the matrix under a view, without embedding and conjugation, for native products.
template <class T>
const MatrixView<const T>& elements_of(const MatrixView<const T>& view) {
  return view;
}
template <class T>
const MatrixView<const std::complex<T>>& elements_of(const EmbeddedView<T>& view) {
  return view.matrix;
}
template <class T>
bool is_conjugated(const MatrixView<const T>&) {
  return false;
}
template <class T>
bool is_conjugated(const EmbeddedView<T>& view) {
  return view.conjugated;
}

// Returns a scalar of the call in the type of the problem's elements.
template <class T>
T scalar(const CallScalar& value) {
  return value.as<T>();
}

template <class T>
MatrixView<T> view_of_c(const Problem& problem, void* data, std::int64_t item) {
  T* pointer = problem.batch_kind == BatchKind::pointers ? static_cast<T* const*>(data)[item]
                                                         : static_cast<T*>(data) + item * problem.stride_c;
  return matrix_view(pointer, problem.layout, Op::none, problem.m, problem.n, problem.ldc);
}

}  // namespace kintsugi::core
