// The library's kernels that multiply a scheme's terms. One launch leads from slices to C.
#pragma once

#include <cstddef>
#include <variant>
#include <vector>

#include "engines/cuda/gemm/multi_term_tiles.hpp"
#include "engines/cuda/step_data.hpp"
#include "engines/fused_kernel.hpp"

namespace kintsugi::core::cuda {

// True if a kernel computes the schedule's terms. The kernel's sums then have the bits of the family's
// accumulator.
bool has_multi_term_gemm(const Schedule& schedule, FormatId format, ElementType type);

// Bytes of scratch memory for counters, for partial sums that clusters exchange, and for sums of segments of
// k.
std::size_t multi_term_scratch_bytes(const DeviceShape& shape);

// All counters in scratch memory that products of the shape may use. The counters must be 0 when a product
// begins.
DeviceCounters multi_term_counters(const DeviceShape& shape, std::byte* scratch);

// A way to compute a product. All ways give the same bits.
using MultiTermVariant = std::variant<ClusterTileVariant, SmallTileVariant, MmaTileVariant>;

// All variants that can compute the product, with their expected times. Their order is always the same. Mma
// tiles do not depend on the costs.
std::vector<MultiTermVariant> multi_term_variants(const DeviceFusedProduct& product,
                                                  const MultiTermCosts& costs);

// Computes C = alpha * sum + beta * C by the variant. `scratch` has multi_term_scratch_bytes() of a shape
// that is at least as large.
void multi_term_gemm(const Queue& queue, const DeviceFusedProduct& product, const MultiTermVariant& variant,
                     std::byte* scratch);

// FusedKernel::choose and FusedKernel::launch: the variant with the shortest expected time.
FusedVariant choose_multi_term_gemm(const DeviceShape& shape);
void launch_multi_term_gemm(const Queue& queue, const DeviceFusedProduct& product,
                            const FusedVariant& variant, std::byte* scratch);

// Expected time to split those operands that are not prepared.
double expected_split_time(const DeviceShape& shape, const CallCosts& costs);
// Expected time of cuBLAS's FP32 product for shapes that suit cuBLAS. Other shapes take up to twice as long.
double expected_vendor_time(const DeviceShape& shape, const CallCosts& costs);

DeviceTimes expected_multi_term_times(const DeviceShape& shape, const Costs& costs);

}  // namespace kintsugi::core::cuda
