// Splits on a device. The functions are documented in engines/device_engine.hpp.
#pragma once

#include <span>

#include "engines/device.hpp"
#include "engines/device_moduli.hpp"

namespace kintsugi::core::cuda {

bool finds_norms(const DeviceSplit& split);
void split_by_norms(const Queue& queue, std::span<const DeviceSplit> splits, const DeviceScalars& scalars,
                    double coefficient, DeviceSelection* selection);
bool splits_complex(const SplitRule& rule);
void split(const Queue& queue, std::span<const DeviceSplit> splits, const DeviceCondition& condition);
// True if split_selected() takes operands of this type and candidates with rules from `least` to `most`.
bool splits_selected(ElementType type, const SplitRule& least, const SplitRule& most);
void split_selected(const Queue& queue, std::span<const DeviceSplit> splits, std::span<const SplitRule> rules,
                    const SelectedModuli& selected);

}  // namespace kintsugi::core::cuda
