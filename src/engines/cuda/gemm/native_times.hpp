// Expected times of native products on the current device, by our own kernels and by the vendor library's.
#pragma once

#include <optional>

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

std::optional<NativeTimes> native_times(const NativeShape& shape);

}  // namespace kintsugi::core::cuda
