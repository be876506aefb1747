// GEMM kernels that convert FP32 operands while they multiply (fp16x3-block): one launch from operands to C.
#pragma once

#include <cstddef>

#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/step_data.hpp"
#include "engines/fused_kernel.hpp"

namespace kintsugi::core::cuda {

// True if the current device's family has kernels for the schedule.
bool has_block_gemm(const Schedule& schedule, FormatId format, ElementType type);

// Functions of the fused kernel (engines/fused_kernel.hpp).
FusedVariant choose_block_gemm(const DeviceShape& shape);
std::size_t block_scratch_bytes(const DeviceShape& shape);
void launch_block_gemm(const Queue& queue, const DeviceFusedProduct& product, const FusedVariant& variant,
                       std::byte* scratch);

DeviceTimes expected_block_times(const DeviceShape& shape, const Costs& costs);

}  // namespace kintsugi::core::cuda
