// Blocks and tiles of C that a fallback chain on a device multiplies one after the other, and their memory.
#pragma once

#include <cstddef>
#include <span>

#include "arith/residue/norm_proof.hpp"
#include "base/memory.hpp"
#include "engines/device_engine.hpp"
#include "planner/plan.hpp"
#include "planner/workspace/device_checked.hpp"
#include "recombine/accumulators.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// Rows and columns of sums in device memory are multiples of this number, which aligns them for every kernel
// of the vendor library.
inline constexpr std::int64_t sums_multiple = 16;

// True if the superaccumulator computes all elements of C, without slices and products of an engine.
bool sums_exactly(const Plan& plan);
// True if the plan runs Ozaki scheme I. Such a plan has no other candidate.
bool is_ozaki1(const Plan& plan);
// True if some candidates are accepted by norms. They come first in the chain.
bool needs_norms(const Plan& plan);
// True if a call makes only one selection, and writes nothing to the report before the selection.
bool begins_with_selection(const Plan& plan);

// Returns the candidates that multiply slices, in order: all but native and the superaccumulator.
std::span<const Candidate> product_candidates(const Plan& plan);

// Returns the number of vectors of op(B), which is also the number of columns of sums, for each column of C:
// two if the parts of complex elements are multiplied as real columns, else one.
std::int64_t vectors_per_column(const Plan& plan, const Candidate& candidate);

// Returns the size of a tile of the real product of magnitudes, by which elements are checked.
DeviceTileSize checked_tile_size(const Plan& plan, const Blocking& blocking);

// Memory of one batch item that does not depend on the selected candidate.
struct DeviceItemMemory {
  VectorRange* ranges_a = nullptr;
  VectorRange* ranges_b = nullptr;
  VectorNorm* norms_a = nullptr;  // if needs_norms()
  VectorNorm* norms_b = nullptr;
  VectorMagnitudes* magnitudes_a =
      nullptr;  // of real FP64 operands whose checked products are scaled by norms
  VectorMagnitudes* magnitudes_b = nullptr;
  DeviceSelection* selection = nullptr;
};
DeviceItemMemory lay_out_item(const Plan& plan, Workspace& workspace);

// Memory of the products of one block.
struct DeviceBlockMemory {
  Slices a;
  Slices b;
  Blocking tiles;     // most rows and columns of C that are multiplied and recombined at once
  Accumulators sums;  // of one tile
  std::byte* scratch = nullptr;
};
DeviceBlockMemory lay_out_block(const Plan& plan, const Candidate& candidate, const Blocking& blocking,
                                Workspace& workspace);

// Returns the size of the blocks of a candidate. Candidates after the first one seldom run, so their slices
// must not make the first one's blocks smaller.
//
// - A checked candidate divides a block of the plan until it needs at most 1.5 times the memory of the first
//   checked candidate, or until the block cannot be divided further.
// - Of candidates that norms prove, the first one has the plan's blocks if C has several. Blocks of the
//   others need at most as much memory as these; if possible they have as many columns.
Blocking candidate_blocking(const Plan& plan, const Candidate& candidate, const Blocking& blocking);

// Returns the bytes of a block for the candidate that needs most.
std::size_t max_block_bytes(const Plan& plan, const Blocking& blocking);

// Returns the bytes of workspace that an execution takes.
std::size_t device_workspace_bytes(const Plan& plan, const Blocking& blocking);

}  // namespace kintsugi::core
