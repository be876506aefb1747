// The problem of a call: C = alpha * op(A) * op(B) + beta * C, once or in a batch.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include "base/rounding.hpp"
#include "base/view.hpp"
#include "formats/double_double.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core {

enum class Side : std::uint8_t { a, b };  // operand A or B of a product
enum class Op : std::int32_t { none = 0, transpose = 1, conjugate_transpose = 2 };
enum class Layout : std::int32_t { column_major = 0, row_major = 1 };
enum class BatchKind : std::int32_t { strided = 0, pointers = 1 };

// Arguments of a call. front/check.cpp has checked them.
struct Problem {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  std::int64_t batch_count = 1;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  Op op_a = Op::none, op_b = Op::none;
  OperandType type = OperandType::f32;  // for complex elements the type of their parts
  bool complex = false;
  Layout layout = Layout::column_major;
  BatchKind batch_kind = BatchKind::strided;
  MemorySpace memory = MemorySpace::host;  // memory of A, B and C
  bool device_scalars = false;             // alpha and beta are in device memory
  bool prepared_a = false;                 // A will be a prepared operand; only the policy auto reads this
  bool prepared_b = false;
  bool adds_to_c = false;                         // beta will not be 0; only the policy auto reads this
  RoundingMode rounding = RoundingMode::nearest;  // mode of the calling thread

  // The next functions return sizes of the real product to which ranges, splits, schedules and bounds refer.
  // For complex elements this is the embedding (base/embedding.hpp): an element's real part is a sum of 2 k
  // products, and each column of op(B) becomes two vectors.
  std::int64_t parts() const { return complex ? 2 : 1; }  // of an element
  std::int64_t products() const { return parts() * k; }   // in one sum
  std::int64_t vectors_b() const { return parts() * n; }

  std::size_t element_bytes() const {
    const std::size_t part = type == OperandType::f32 ? 4 : type == OperandType::f64 ? 8 : 16;
    return complex ? 2 * part : part;
  }

  friend bool operator==(const Problem&, const Problem&) = default;
};

constexpr const char* element_type_name(OperandType type, bool complex) {
  if (complex) return type == OperandType::f32 ? "c32" : "c64";
  return type_name(type);
}

// Calls visit.template operator()<T>() with the type of the problem's elements.
template <class Visit>
decltype(auto) with_element_type(const Problem& problem, Visit&& visit) {
  if (problem.complex) {
    return problem.type == OperandType::f32 ? visit.template operator()<std::complex<float>>()
                                            : visit.template operator()<std::complex<double>>();
  }
  if (problem.type == OperandType::dd) return visit.template operator()<DoubleDouble>();
  return problem.type == OperandType::f32 ? visit.template operator()<float>()
                                          : visit.template operator()<double>();
}

// Returns the view of op(X), without conjugation, where op(X) has `rows` x `columns` elements and X is stored
// with the leading dimension `ld`.
template <class T>
MatrixView<T> matrix_view(T* data, Layout layout, Op op, std::int64_t rows, std::int64_t columns,
                          std::int64_t ld) {
  const bool transposed = op != Op::none;
  const bool has_contiguous_columns = (layout == Layout::column_major) != transposed;
  return {data, rows, columns, has_contiguous_columns ? 1 : ld, has_contiguous_columns ? ld : 1};
}

// Returns the element type in the terms of device engines.
constexpr ElementType element_type(const Problem& problem) {
  if (problem.complex) return problem.type == OperandType::f32 ? ElementType::c32 : ElementType::c64;
  return problem.type == OperandType::f32 ? ElementType::f32 : ElementType::f64;
}

// Returns the value of NativeShape::is_aligned for the problem.
constexpr bool has_aligned_lines(const Problem& problem) {
  constexpr std::int64_t line_alignment = 16;  // bytes that one load reads
  const auto bytes = static_cast<std::int64_t>(element_bytes(element_type(problem)));
  return problem.lda * bytes % line_alignment == 0 && problem.ldb * bytes % line_alignment == 0;
}

}  // namespace kintsugi::core
