// The matrices of a problem as a device's steps read them.
#pragma once

#include <cstdint>

#include "engines/device.hpp"
#include "planner/element_type.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

DeviceMatrix device_operand(const Problem& problem, Side side, const void* data);
DeviceMatrix device_result(const Problem& problem, const void* data);

// How an operand lies in memory: whether its contiguous elements lie along k, and its leading dimension.
// Strides do not say so: where both are 1, either way has the same elements, but BLAS conjugates in one of
// them alone.
struct OperandStorage {
  bool along_k = false;
  std::int64_t ld = 0;
};

OperandStorage operand_storage(const Problem& problem, Side side);

}  // namespace kintsugi::core
