// Expected times of native products on a device, by our own kernels and by the vendor library's.
#pragma once

#include "engines/cuda/arch/costs.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Times to test the vendor's sums in C: by reading them, and by the operands' magnitudes where these prove them.
struct TestTimes {
  double of_sums;
  double of_operands;
};
TestTimes test_times(const NativeShape& shape, const Costs& costs);

NativeTimes native_times(const NativeShape& shape, const Costs& costs);

}  // namespace kintsugi::core::cuda
