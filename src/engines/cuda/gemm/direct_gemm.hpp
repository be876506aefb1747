// GEMM kernels that convert FP32 operands while they multiply (bf16x6-direct): one launch from operands to C.
#pragma once

#include <cstddef>

#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/step_data.hpp"
#include "engines/fused_kernel.hpp"

namespace kintsugi::core::cuda {

// True if the current device's family has kernels for the schedule.
bool has_direct_gemm(const Schedule& schedule, FormatId format, ElementType type);

// Functions of the fused kernel (engines/fused_kernel.hpp).
FusedVariant choose_direct_gemm(const DeviceShape& shape);
std::size_t direct_scratch_bytes(const DeviceShape& shape);
void launch_direct_gemm(const Queue& queue, const DeviceFusedProduct& product, const FusedVariant& variant,
                        std::byte* scratch);

DeviceTimes expected_direct_times(const DeviceShape& shape, const Costs& costs);

}  // namespace kintsugi::core::cuda
