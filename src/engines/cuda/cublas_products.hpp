// Products of slices by cuBLAS, term by term.
#pragma once

#include <cstddef>

#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// product_scratch_bytes() and multiply() (steps.hpp) of schedules that no kernel of the library computes.
std::size_t cublas_scratch_bytes(const Schedule& schedule, FormatId format, std::int64_t rows,
                                 std::int64_t columns);
void multiply_by_cublas(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                        const Accumulators& sums, std::byte* scratch, const DeviceFit* fit);

// Creates the cuBLAS handle of the current context, if there is none yet. That allocates memory.
void prepare_blas();

}  // namespace kintsugi::core::cuda
