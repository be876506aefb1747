// Products of residues by kernels of our own for compute capability 9.0, from slices to residues in one launch.
#pragma once

#include "engines/cuda/products/sm90/residue_tiles.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Whether the sums of these terms are known by residues, a modulus each.
bool has_residue_products(const Schedule& schedule, FormatId format);

// multiply() of such a schedule, whatever k is. Needs no scratch.
void multiply_residues(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                       const Accumulators& sums);
// The same by one of the tiles.
void multiply_residues(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                       const Accumulators& sums, const ResidueChoice& choice);

}  // namespace kintsugi::core::cuda
