// Products of int8 slices with exponents per tile by the library's kernels for compute capability 9.0, from
// slices to C in one launch.
#pragma once

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// True if there is a kernel for the schedule: elements are FP32, and each tile of an operand has one
// exponent.
bool has_weighted_tile_gemm(const Schedule& schedule, FormatId format, ElementType type);

// Does what DeviceEngine::multiply_fused() does, for such a schedule. It needs no scratch memory.
void weighted_tile_gemm(const Queue& queue, const DeviceFusedProduct& product);

}  // namespace kintsugi::core::cuda
