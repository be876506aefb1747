// Recombination of sums into C: what its kernels take, their tables, and sums of k-blocks.
#pragma once

#include <utility>

#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// True if residues of complex elements with this basis are recombined.
bool recombines(const ComplexBasis& basis);

// Adds the int32 sums `inside` of one k-block to the sums `outside` of the earlier k-blocks. The sums of the
// first k-block are stored instead. `outside` has 64-bit integers if modulus is 0; else it has residues of
// one byte, 0 ... modulus - 1. Both arrays have `elements` elements.
void add_outside(const Queue& queue, const std::int32_t* inside, std::int64_t elements, int modulus,
                 bool is_first_k_block, void* outside);

// add_outside() without a modulus, for sums `inside` that are integers in FP64 (`inside_is_fp64`) or FP32.
void add_exact_sums_outside(const Queue& queue, const void* inside, bool inside_is_fp64,
                            std::int64_t elements, bool is_first_k_block, std::int64_t* outside);

}  // namespace kintsugi::core::cuda
