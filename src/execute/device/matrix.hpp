// Makes descriptions of a problem's matrices for the steps on a device.
#pragma once

#include <cstdint>

#include "engines/device.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

// Returns A or B as a matrix of vectors x k.
DeviceMatrix device_operand(const Problem& problem, Side side, const void* data);
// Returns C.
DeviceMatrix device_result(const Problem& problem, const void* data);

// Storage of an operand. Strides do not say it: if both strides are 1, the operand may be transposed or not,
// and this matters since BLAS conjugates only transposed operands.
struct OperandStorage {
  bool along_k = false;  // true: contiguous elements lie along k
  std::int64_t ld = 0;
};

OperandStorage operand_storage(const Problem& problem, Side side);

}  // namespace kintsugi::core
