// Products of int8 slices with exponents per tile by our kernels for compute capability 9.0, from slices to
// C.
#pragma once

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// True if there are kernels: FP32 elements, one exponent for each operand's tile.
bool has_weighted_tile_gemm(const Schedule& schedule, FormatId format, ElementType type);

// DeviceEngine::multiply_fused() of such a schedule; needs no scratch memory.
void weighted_tile_gemm(const Queue& queue, const DeviceFusedProduct& product);

}  // namespace kintsugi::core::cuda
