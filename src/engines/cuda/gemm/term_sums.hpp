// Kernels that multiply the terms of schedules for which the library has no kernel of its own: those of the
// literature. They are compiled at run time (common/run_time_compiler.hpp), for the schedule itself. One
// launch goes through all of k; a recombination reads the sums of the groups.
#pragma once

#include <optional>
#include <vector>

#include "engines/cuda/common/run_time_compiler.hpp"
#include "engines/cuda/gemm/term_sums_params.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// The schedule as the kernels take it; nothing if they do not.
std::optional<TermStructure> term_structure(const Schedule& schedule, FormatId format);

// Tiles of a product whose pipeline stages fit the shared memory, with the expected time of each.
// `has_wgmma`: the device takes kernels by wgmma.
struct TermSumsVariant {
  TermSumsTile tile;
  double time = 0;  // relative to the others'
};
std::vector<TermSumsVariant> term_sums_variants(const TermStructure& structure, std::int64_t rows,
                                                std::int64_t columns, std::int32_t sm_count,
                                                std::int64_t shared_bytes, bool has_wgmma = false);

RunTimeSource term_sums_source(const TermStructure& structure, FormatId format, const TermSumsTile& tile);

// True if multiply_terms() takes the schedule here: it has a structure, and a kernel can be compiled.
bool has_term_sums(const Schedule& schedule, FormatId format);

// Compiles the kernel for a tile of sums, unless it was compiled before.
void prepare_terms(const Schedule& schedule, FormatId format, std::int64_t rows, std::int64_t columns);

// Multiplies slices as multiply() (steps.hpp) does. The sums have the bits of the family's accumulator.
void multiply_terms(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                    const Accumulators& sums, const DeviceFit* fit);

}  // namespace kintsugi::core::cuda
