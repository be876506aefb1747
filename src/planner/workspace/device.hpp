// Parts of C that a fallback chain on a device multiplies at a time, and their memory.
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

// Multiple of rows and columns of sums in device memory: aligned for every kernel of the vendor library.
inline constexpr std::int64_t sums_multiple = 16;

// True if elements are summed exactly, without slices and products of an engine.
bool sums_exactly(const Plan& plan);
bool is_ozaki1(const Plan& plan);
bool needs_norms(const Plan& plan);
// True if a call makes a single selection and writes nothing to the report before it.
bool begins_with_selection(const Plan& plan);

// Returns the emulations of the fallback chain whose products an engine computes, in order.
std::span<const Candidate> product_candidates(const Plan& plan);

// Vectors of op(B), and columns of sums, for each column of C: two where the parts of complex elements are
// multiplied as real columns, else one.
std::int64_t vectors_per_column(const Plan& plan, const Candidate& candidate);

// Columns of C in a tile, so that no product has more columns than the engine's tile. Checked magnitudes
// count as real columns.
std::int64_t tile_columns(const Plan& plan, const Candidate& candidate);

// Size of a tile of the real product of magnitudes that checks elements.
DeviceTileSize checked_tile_size(const Plan& plan, const Blocking& blocking);

// Memory of one batch item, independent of its candidates.
struct DeviceItemMemory {
  VectorRange* ranges_a = nullptr;
  VectorRange* ranges_b = nullptr;
  VectorNorm* norms_a = nullptr;  // if needs_norms()
  VectorNorm* norms_b = nullptr;
  DeviceSelection* selection = nullptr;
};
DeviceItemMemory lay_out_item(const Plan& plan, Workspace& workspace);

// Memory of the products of one block.
struct DeviceBlockMemory {
  Slices a;
  Slices b;
  Accumulators sums;
  std::byte* scratch = nullptr;
};
DeviceBlockMemory lay_out_block(const Plan& plan, const Candidate& candidate, const Blocking& blocking,
                                Workspace& workspace);

// Returns the parts of a block that a candidate multiplies at a time. A later checked candidate, which seldom
// runs, takes at most half as much memory again as the first one, if the block can be divided so far.
Blocking candidate_blocking(const Plan& plan, const Candidate& candidate, const Blocking& blocking);

// Bytes of a block for the candidate that needs most.
std::size_t max_block_bytes(const Plan& plan, const Blocking& blocking);

// Bytes of workspace that execution takes.
std::size_t device_workspace_bytes(const Plan& plan, const Blocking& blocking);

}  // namespace kintsugi::core
