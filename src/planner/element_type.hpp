// Properties of a problem as device engines name them: the type of its elements, the alignment of its lines.
#pragma once

#include "engines/device.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

constexpr ElementType element_type(const Problem& problem) {
  if (problem.complex) return problem.type == OperandType::f32 ? ElementType::c32 : ElementType::c64;
  return problem.type == OperandType::f32 ? ElementType::f32 : ElementType::f64;
}

// NativeShape::is_aligned of the problem.
constexpr bool has_aligned_lines(const Problem& problem) {
  constexpr std::int64_t line_alignment = 16;  // bytes that one load reads
  const auto bytes = static_cast<std::int64_t>(element_bytes(element_type(problem)));
  return problem.lda * bytes % line_alignment == 0 && problem.ldb * bytes % line_alignment == 0;
}

}  // namespace kintsugi::core
