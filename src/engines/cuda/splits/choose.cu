// The choice of a rung, where the ranges are.
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

extern "C" __global__ void mark_choice(DeviceChoice* choice) { choice->rung = 0; }

}  // namespace kintsugi::core::cuda
