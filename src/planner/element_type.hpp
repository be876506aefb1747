// Properties of a problem in the terms of device engines: element type and alignment of lines.
#pragma once

#include "engines/device.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

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
