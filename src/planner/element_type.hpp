// The type of a problem's elements as device engines name it.
#pragma once

#include "engines/device.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

constexpr ElementType element_type(const Problem& problem) {
  if (problem.complex) return problem.type == OperandType::f32 ? ElementType::c32 : ElementType::c64;
  return problem.type == OperandType::f32 ? ElementType::f32 : ElementType::f64;
}

}  // namespace kintsugi::core
