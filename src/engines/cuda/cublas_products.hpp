// Products by cuBLAS: schedules term by term, and native products. Functions without a comment are documented
// in engines/device_engine.hpp.
#pragma once

#include <cstddef>

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Bytes of the workspace of a cuBLAS call: as many as cuBLAS would allocate itself. Every call gets memory of
// its own, so that its results do not depend on other streams.
inline constexpr std::size_t vendor_workspace_bytes = std::size_t{32} << 20;

std::size_t multiply_scratch_bytes(const Schedule& schedule, FormatId format, std::int64_t rows,
                                   std::int64_t columns);
void multiply(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
              const Accumulators& sums, std::byte* scratch, const DeviceFit* fit);
bool native(const Queue& queue, const DeviceBlasProduct& product, std::byte* scratch);

// Creates the cuBLAS handle of the current context, if there is none yet. That allocates memory.
void prepare_blas();

}  // namespace kintsugi::core::cuda
