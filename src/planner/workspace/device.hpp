// What a fallback chain on a device multiplies at a time, and the memory that takes.
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

// Rows and columns of sums in device memory: aligned for any of the vendor library's kernels.
inline constexpr std::int64_t sums_multiple = 16;

// Without slices and an engine's products.
bool sums_exactly(const Plan& plan);
bool is_ozaki1(const Plan& plan);
bool asks_for_norms(const Plan& plan);
// Whether nothing is added to the report before its one selection, that of the call's one item.
bool begins_with_selection(const Plan& plan);

// The fallback chain's emulations whose products are an engine's, one after the other.
std::span<const Candidate> product_candidates(const Plan& plan);

// Columns of slices that a column of C has: two for the parts of complex elements that are multiplied as real
// ones.
std::int64_t columns_each(const Plan& plan, const Candidate& candidate);

// Of C's columns, so that no product's columns are more than a tile: those of checked magnitudes are real
// ones.
std::int64_t tile_columns(const Plan& plan, const Candidate& candidate);

// Of the real product that magnitudes are checked by.
DeviceTileSize checked_tile_size(const Plan& plan, const Blocking& blocking);

// Memory of one batch item, whatever its candidates.
struct DeviceItemMemory {
  VectorRange* ranges_a = nullptr;
  VectorRange* ranges_b = nullptr;
  VectorNorm* norms_a = nullptr;  // where asks_for_norms()
  VectorNorm* norms_b = nullptr;
  DeviceSelection* selection = nullptr;
};
DeviceItemMemory lay_out_item(const Plan& plan, Workspace& workspace);

// Memory of one block's products.
struct DeviceBlockMemory {
  Slices a;
  Slices b;
  Accumulators sums;
  std::byte* scratch = nullptr;
};
DeviceBlockMemory lay_out_block(const Plan& plan, const Candidate& candidate, const Blocking& blocking,
                                Workspace& workspace);

// Of the candidate that needs most.
std::size_t most_block_bytes(const Plan& plan, const Blocking& blocking);

// What execution takes of a workspace.
std::size_t device_workspace_bytes(const Plan& plan, const Blocking& blocking);

}  // namespace kintsugi::core
