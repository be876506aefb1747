// The library's kernels that multiply int8 slices with exponents per tile. One
// launch leads from slices to C.
#pragma once

#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/step_data.hpp"
#include "engines/fused_kernel.hpp"

namespace kintsugi::core::cuda {

// True if a kernel computes the schedule. The elements must be FP32, and each tile of an operand must have
// one exponent.
bool has_weighted_tile_gemm(const Schedule& schedule, FormatId format, ElementType type);

// Bytes of scratch memory for the sums of tiles that fail Eq. 9. Each element of C has one such sum.
std::size_t weighted_tile_scratch_bytes(const DeviceShape& shape);

// FusedKernel::launch of such a schedule, which has one variant. `scratch` has weighted_tile_scratch_bytes()
// of a shape that is at least as large.
void launch_weighted_tile_gemm(const Queue& queue, const DeviceFusedProduct& product,
                               const FusedVariant& variant, std::byte* scratch);

// Expected time in microseconds of launch_weighted_tile_gemm() if no tile fails Eq. 9.
double expected_weighted_tile_gemm_time(const DeviceShape& shape, const WeightedTileCosts& costs);

// Expected time in microseconds to pack the operands of the shape that are not prepared.
double expected_packing_time(const DeviceShape& shape, const Costs& costs);

// Expected times of a call in which no tile fails Eq. 9, and of a native product.
DeviceTimes expected_weighted_tile_times(const DeviceShape& shape, const Costs& costs);

}  // namespace kintsugi::core::cuda
