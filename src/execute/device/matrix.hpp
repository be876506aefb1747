// Matrices of a problem as the steps on a device read them.
#pragma once

#include <cstdint>

#include "engines/device.hpp"
#include "planner/element_type.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

DeviceMatrix device_operand(const Problem& problem, Side side, const void* data);
DeviceMatrix device_result(const Problem& problem, const void* data);

// Storage of an operand: whether its contiguous elements lie along k, and its leading dimension. Strides do
// not tell: if both are 1, both ways have the same elements, but BLAS conjugates in only one of them.
struct OperandStorage {
  bool along_k = false;
  std::int64_t ld = 0;
};

OperandStorage operand_storage(const Problem& problem, Side side);

}  // namespace kintsugi::core
