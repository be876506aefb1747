// Memory of a call on a device, and the blocks and tiles of C that it multiplies one after the other. The
// lay_out_...() functions take memory from the workspace in an execution; when a plan is made, the same
// functions count its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "arith/residue/norm_proof.hpp"
#include "arith/residue/rounding_errors.hpp"
#include "base/memory.hpp"
#include "engines/cuda/ozaki1/step_data.hpp"
#include "engines/cuda/recombine/checked/checks.hpp"
#include "engines/cuda/steps.hpp"
#include "planner/plan.hpp"
#include "recombine/accumulators.hpp"
#include "split/slices.hpp"
#include "split/successive.hpp"

namespace kintsugi::core {

// Rows and columns of the sums of the largest tile.
struct DeviceTileSize {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

// True if the contract allows errors. Then a product of magnitudes, a lower bound of |A||B|, can prove
// elements.
bool allows_error(const Plan& plan);

// Memory that a checked plan needs in addition to the memory of its products
// (execute/device/checked.hpp).
struct DeviceCheckedMemory {
  RoundingErrors* rounding_errors_a = nullptr;
  RoundingErrors* rounding_errors_b = nullptr;
  DeviceOpenElements open_elements;  // open elements of one block of C
  // Ranges, slices and sums of magnitudes, if allows_error(). Magnitudes have ranges of their own, since
  // their scales are different from the scales of the residues.
  VectorRange* ranges_a = nullptr;
  VectorRange* ranges_b = nullptr;
  Slices slices_a;
  Slices slices_b;
  Accumulators sums;
};
DeviceCheckedMemory lay_out_device_checked(const Plan& plan, const Blocking& blocking,
                                           const DeviceTileSize& tile, Workspace& workspace);

// Returns the scratch bytes of the products of magnitudes. The other products of the tile run later and use
// the same scratch.
std::size_t magnitude_scratch_bytes(const Plan& plan, const DeviceTileSize& tile);

// Product by Ozaki scheme I (execute/device/ozaki1.hpp): slices, tiles and memory.

// Rows and columns of C that one step multiplies: about twice as many tiles of 128 x 128 as an H200 has SMs.
inline constexpr std::int64_t ozaki1_tile_edge = 2048;
// Number of products of slices that one step adds.
inline constexpr int ozaki1_products_at_once = 4;

// True if sums are exact and C is correctly rounded (mode=cr).
bool is_exact_ozaki1(const Plan& plan);

// Returns the number of slices of each operand that a device makes and multiplies, whatever the data are. The
// device counts the slices that the data need, but the host does not wait for these counts.
int ozaki1_device_slices(const Plan& plan);

// Returns the sizes of the blocks of C with their own numbers of slices. The pointer to the counts is null.
DeviceBlockSliceCounts ozaki1_slice_counts(const Plan& plan);

// Returns the layout of products of slices for `rows` rows and `columns` columns of C. The pointer to the
// data is null.
Accumulators ozaki1_products(const Plan& plan, std::int64_t rows, std::int64_t columns);

// All memory of a batch item.
struct DeviceOzaki1Memory {
  Slices a;
  Slices b;
  DeviceSliceExponents exponents_a;
  DeviceSliceExponents exponents_b;
  std::int32_t* unreachable = nullptr;  // set by the device if the operands need more slices than are made
  double* weights = nullptr;            // if slices are counted on the device
  SliceCounts* slice_counts = nullptr;  // if slices are counted on the device
  std::byte* products = nullptr;
  std::byte* sums = nullptr;
  std::byte* scratch = nullptr;
};
DeviceOzaki1Memory lay_out_device_ozaki1(const Plan& plan, const Blocking& blocking, Workspace& workspace);

// Fused calls. True if a device computes every emulation of the plan from slices to C in one kernel.
bool is_fused(const Plan& plan);

// Candidates of the plan except the native product.
std::span<const Candidate> emulations(const Plan& plan);

// True if one block is all of C.
bool covers_all(const Plan& plan, const Blocking& blocking);

// Returns the number of batch items that one launch multiplies.
std::int64_t items_at_once(const Plan& plan, const Blocking& blocking);

// Slices of one batch item, or of one block of it if C is computed in blocks.
struct FusedSlices {
  Slices a;
  Slices b;

  std::size_t bytes() const { return a.bytes() + b.bytes(); }
};
FusedSlices fused_slices(const Plan& plan, const Candidate& candidate, const Blocking& blocking);

// All memory of a call, for items_at_once() batch items.
struct FusedMemory {
  VectorRange* rows;
  VectorRange* columns;
  MergedSummary* row_summaries;  // nullptr if the selection reads the ranges of all rows, since they are few
  MergedSummary* column_summaries;  // nullptr if the selection reads the ranges of all columns
  DeviceSelection* selections;
  std::byte* scratch;       // large enough for every candidate
  DeviceCounters counters;  // counters in `scratch` of the candidate with the most counters
  std::byte* slices;        // large enough for every candidate
};
FusedMemory lay_out_fused(const Plan& plan, const Blocking& blocking, Workspace& workspace);

// Fallback chains whose candidates are computed in separate steps: blocks, tiles and memory.

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
