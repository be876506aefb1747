// Where one batch entry's operands lie.
#pragma once

#include "plan/execute.hpp"
#include "plan/problem.hpp"

namespace kintsugi::core {

template <class T>
const T* batch_pointer(const void* data, BatchKind kind, std::int64_t stride, std::int64_t entry) {
  if (kind == BatchKind::pointers) return static_cast<const T* const*>(data)[entry];
  return static_cast<const T*>(data) + entry * stride;
}

inline const Prepared::Entry* prepared_entry(const Prepared* prepared, std::int64_t entry) {
  if (prepared == nullptr) return nullptr;
  return &prepared->entries[prepared->entries.size() == 1 ? 0 : static_cast<std::size_t>(entry)];
}

// The dense copy of a prepared operand, vectors x k.
template <class T>
MatrixView<const T> view_of_copy(const Prepared& prepared, std::int64_t entry) {
  const Prepared::Entry& part = *prepared_entry(&prepared, entry);
  return {static_cast<const T*>(part.copy.pointer()), prepared.vectors, prepared.k, part.vector_stride,
          part.element_stride};
}

// op(A) as m x k, of a prepared copy where there is one.
template <class T>
MatrixView<const T> view_of_a(const Problem& problem, const void* data, const Prepared* prepared,
                              std::int64_t entry) {
  if (prepared != nullptr) return view_of_copy<T>(*prepared, entry);
  return matrix_view(batch_pointer<T>(data, problem.batch_kind, problem.stride_a, entry), problem.layout,
                     problem.op_a, problem.m, problem.k, problem.lda);
}

// op(B) transposed, n x k: its rows are the columns of op(B).
template <class T>
MatrixView<const T> view_of_b(const Problem& problem, const void* data, const Prepared* prepared,
                              std::int64_t entry) {
  if (prepared != nullptr) return view_of_copy<T>(*prepared, entry);
  return matrix_view(batch_pointer<T>(data, problem.batch_kind, problem.stride_b, entry), problem.layout,
                     problem.op_b, problem.k, problem.n, problem.ldb)
      .transposed();
}

template <class T>
MatrixView<T> view_of_c(const Problem& problem, void* data, std::int64_t entry) {
  T* pointer = problem.batch_kind == BatchKind::pointers ? static_cast<T* const*>(data)[entry]
                                                         : static_cast<T*>(data) + entry * problem.stride_c;
  return matrix_view(pointer, problem.layout, Op::none, problem.m, problem.n, problem.ldc);
}

}  // namespace kintsugi::core
