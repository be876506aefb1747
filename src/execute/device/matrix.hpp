// Matrices of a problem as the steps on a device read them.
#pragma once

#include <cstdint>

#include "engines/device.hpp"
#include "planner/element_type.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

// Returns A or B as a matrix of vectors x k.
DeviceMatrix device_operand(const Problem& problem, Side side, const void* data);
// Returns C.
DeviceMatrix device_result(const Problem& problem, const void* data);

// Storage of an operand: whether its contiguous elements lie along k, and its leading dimension. Strides do
// not say whether an operand is transposed if both are 1, and BLAS conjugates only transposed operands.
struct OperandStorage {
  bool along_k = false;
  std::int64_t ld = 0;
};

OperandStorage operand_storage(const Problem& problem, Side side);

}  // namespace kintsugi::core
