// Splits on a device. The functions are documented in engines/device_engine.hpp.
#pragma once

#include <span>

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

bool finds_norms(const DeviceSplit& split);
void split_by_norms(const Queue& queue, std::span<const DeviceSplit> splits, const DeviceScalars& scalars,
                    double coefficient, DeviceSelection* selection);
bool splits_complex(const SplitRule& rule);
void split(const Queue& queue, std::span<const DeviceSplit> splits, const DeviceCondition& condition);

}  // namespace kintsugi::core::cuda
