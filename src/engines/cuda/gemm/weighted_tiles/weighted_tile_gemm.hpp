// Products of int8 slices with exponents per tile by the library's kernels for compute capability 9.0, from
// slices to C in one launch.
#pragma once

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// True if there is a kernel for the schedule: elements are FP32, and each tile of an operand has one
// exponent.
bool has_weighted_tile_gemm(const Schedule& schedule, FormatId format, ElementType type);

// Bytes of scratch memory: sums of tiles that fail Eq. 9, one for each element of C.
std::size_t weighted_tile_scratch_bytes(const DeviceShape& shape);

// DeviceEngine::multiply_fused() of such a schedule. `scratch` has weighted_tile_scratch_bytes() of a shape
// that is at least as large.
void weighted_tile_gemm(const Queue& queue, const DeviceFusedProduct& product, std::byte* scratch);

}  // namespace kintsugi::core::cuda
