// Products by cuBLAS: schedules term by term, and native products.
#pragma once

#include <cstddef>

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Workspace of a cuBLAS call: as much as cuBLAS takes for itself where it is given none. With memory of the
// call's own its results do not depend on what other streams do.
inline constexpr std::size_t vendor_workspace_bytes = std::size_t{32} << 20;

std::size_t multiply_scratch_bytes(const Schedule& schedule, FormatId format, std::int64_t rows,
                                   std::int64_t columns);
void multiply(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
              const Accumulators& sums, std::byte* scratch, const DeviceFit* fit);
bool native(const Queue& queue, const DeviceBlasProduct& product, std::byte* scratch);

// Makes the handle of the current context, which allocates.
void prepare_blas();

}  // namespace kintsugi::core::cuda
