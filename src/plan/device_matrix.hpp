// The matrices of a problem as a device's steps read them.
#pragma once

#include <cstdint>

#include "engines/device.hpp"
#include "plan/execute.hpp"
#include "plan/problem.hpp"

namespace kintsugi::core {

EntryType entry_type(const Problem& problem);

DeviceMatrix device_operand(const Problem& problem, Side side, const void* data);
DeviceMatrix device_result(const Problem& problem, const void* data);

// Whether the unit stride runs from vector to vector, not along k. Where both strides are 1, the one of more than one
// element is the unit's.
bool vectors_are_strided(const DeviceMatrix& matrix);

std::int64_t leading_dimension(const DeviceMatrix& matrix);

}  // namespace kintsugi::core
