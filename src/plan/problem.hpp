// The problem of a call: C = alpha * op(A) * op(B) + beta * C, once or in a batch.
#pragma once

#include <cstdint>

#include "base/view.hpp"
#include "plan/program.hpp"

namespace kintsugi::core {

enum class Op : std::int32_t { none = 0, transpose = 1, conjugate_transpose = 2 };
enum class Layout : std::int32_t { column_major = 0, row_major = 1 };
enum class BatchKind : std::int32_t { strided = 0, pointers = 1 };

// Checked arguments (front/check.cpp); types are those that this version computes.
struct Problem {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  std::int64_t batch_count = 1;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  Op op_a = Op::none, op_b = Op::none;
  OperandType type = OperandType::f32;
  Layout layout = Layout::column_major;
  BatchKind batch_kind = BatchKind::strided;
};

// rows x columns matrix with a leading dimension, after op: real types, so T and C are the same.
template <class T>
MatrixView<T> matrix_view(T* data, Layout layout, Op op, std::int64_t rows, std::int64_t columns,
                          std::int64_t ld) {
  const bool transposed = op != Op::none;
  const bool unit_down = (layout == Layout::column_major) != transposed;
  return {data, rows, columns, unit_down ? 1 : ld, unit_down ? ld : 1};
}

}  // namespace kintsugi::core
