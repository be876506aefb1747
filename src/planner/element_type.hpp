// The type of a problem's elements as devices name it.
#pragma once

#include "engines/device.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

constexpr EntryType entry_type(const Problem& problem) {
  if (problem.complex) return problem.type == OperandType::f32 ? EntryType::c32 : EntryType::c64;
  return problem.type == OperandType::f32 ? EntryType::f32 : EntryType::f64;
}

}  // namespace kintsugi::core
