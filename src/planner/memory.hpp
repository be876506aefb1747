// Memory of an execution. The lay_out_...() functions take arrays from the workspace in an execution; when a
// plan is made, the same functions count their bytes. The steps of the plan say which arrays there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "arith/range.hpp"
#include "arith/residue/rounding_errors.hpp"
#include "base/memory.hpp"
#include "engines/cuda/ozaki1/step_data.hpp"
#include "engines/cuda/recombine/checked/checks.hpp"
#include "engines/cuda/step_data.hpp"
#include "planner/plan.hpp"
#include "recombine/accumulators.hpp"
#include "recombine/ozaki1.hpp"
#include "split/equilibrate.hpp"
#include "split/slices.hpp"
#include "split/successive.hpp"

namespace kintsugi::core {

// Returns the bytes of workspace for an execution with these steps and that blocking, whichever candidate is
// selected.
std::size_t workspace_bytes(const Plan& plan, std::span<const Step> steps, const Blocking& blocking);
std::size_t workspace_bytes(const Plan& plan, const Blocking& blocking);

// Sets the plan's steps and workspace for its candidates and blocking, and the variants of fused kernels.
void set_steps(Plan& plan);

// Returns the largest blocking that fits the limit (0: no limit); nothing if even the smallest one does not
// fit. fit_blocking() then fails with workspace_too_small.
std::optional<Blocking> blocking_within(const Plan& plan, std::size_t limit);
Blocking fit_blocking(const Plan& plan, std::size_t limit);

// Returns the next smaller blocking, with rows and columns in multiples of `multiple`. Returns the same
// blocking if it is the smallest.
Blocking smaller_blocking(const Blocking& blocking, std::int64_t multiple);

// Returns the number of which the rows and columns of every block must be multiples. If bits of C depend on
// the engine's tiles, this is the size of a tile, so that blocking does not move tiles. Bits of fused and
// integer products do not depend on tiles (engines/cuda/steps.hpp), so their blocks may begin wherever slices
// can be cut.
std::int64_t block_multiple(const Plan& plan);

// True if one block is all of C.
bool covers_all(const Plan& plan, const Blocking& blocking);

// Cuts `length` rows or columns into as few blocks of equal size as possible, with at most `max_edge` rows or
// columns each. Returns the rows or columns of a block. Each block of Ozaki scheme I has its own number of
// slices (dgemm-tc, section 4.2).
inline std::int64_t block_edge(std::int64_t length, std::int64_t max_edge) {
  return divide_up(length, divide_up(length, std::min(max_edge, length)));
}

// ---------------------------------------------------------------- device

// Rows and columns of sums in device memory are multiples of this number, which aligns them for every kernel
// of the vendor library.
inline constexpr std::int64_t sums_multiple = 16;

// Ranges that one thread block, on which the selection runs, reads in about 16 us. The ranges of more vectors
// are summarized before the selection by several thread blocks.
inline constexpr std::int64_t most_ranges_selected = 16384;

// Returns the number of batch items that one launch of a fused kernel multiplies.
std::int64_t items_at_once(const Plan& plan, const Blocking& blocking);

// Returns the size of the blocks of a candidate. Candidates after the first one seldom run, so their slices
// must not make the first one's blocks smaller.
//
// - A checked candidate divides a block of the plan until it needs at most 1.5 times the memory of the first
//   checked candidate, or until the block cannot be divided further.
// - Of candidates that norms prove, the first one has the plan's blocks if C has several. Blocks of the
//   others need at most as much memory as these; if possible they have as many columns.
Blocking candidate_blocking(const Plan& plan, const Candidate& candidate, const Blocking& blocking);

// Returns the most rows and columns of C that are multiplied and recombined at once, where sums go through
// memory.
Blocking tiles_of(const Plan& plan, const Candidate& candidate, const Blocking& blocking);

// Memory of the products of one block.
struct DeviceBlockMemory {
  Slices a;
  Slices b;
  Accumulators sums;  // of one tile
  std::byte* scratch = nullptr;
};
// Returns the slices of a block, without memory.
DeviceBlockMemory block_slices(const Plan& plan, const Candidate& candidate, const Blocking& blocking);
// `loop`: a step for_blocks. `items`: batch items that have slices of A, and of B.
struct SliceItems {
  std::int64_t a = 1;
  std::int64_t b = 1;
};
DeviceBlockMemory lay_out_block(const Plan& plan, const Step& loop, std::span<const Step> body,
                                const SliceItems& items, Workspace& workspace);

// Memory that a checked plan needs in addition to the memory of its products.
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

// Rows and columns of C that one step of Ozaki scheme I multiplies: about twice as many tiles of 128 x 128 as
// a device of 132 SMs computes at once. Number of products of slices that one step adds.
inline constexpr std::int64_t ozaki1_tile_edge = 2048;
inline constexpr int ozaki1_products_at_once = 4;
// The same rows and columns where one launch adds all products. Blocks of C have different numbers of
// products, so that many of them share a launch.
inline constexpr std::int64_t ozaki1_added_edge = 8192;

// True if sums are exact and C is correctly rounded (mode=cr).
bool is_exact_ozaki1(const Plan& plan);
// Inner indices, padding included, whose products the matrix unit sums without an error.
std::int64_t ozaki1_k_block(const Plan& plan);
// True if the device's kernel adds all products of slices to FP64 sums, so that no product is in memory.
bool adds_ozaki1_products(const Plan& plan);
// Rows and columns of C that one step of Ozaki scheme I multiplies on a device.
std::int64_t ozaki1_edge(const Plan& plan);
// Returns the number of slices of each operand that a device makes and multiplies, whatever the data are. The
// device counts the slices that the data need, but the host does not wait for these counts.
int ozaki1_device_slices(const Plan& plan);
// Returns the layout of products of slices for `rows` rows and `columns` columns of C. The pointer to the
// data is null.
Accumulators ozaki1_products(const Plan& plan, std::int64_t rows, std::int64_t columns);

// Memory of a batch item for Ozaki scheme I.
struct DeviceOzaki1Memory {
  Slices a;
  Slices b;
  DeviceSliceExponents exponents_a;
  DeviceSliceExponents exponents_b;
  std::int32_t* unreachable = nullptr;  // set by the device if the operands need more slices than are made
  double* weights = nullptr;            // if slices are counted on the device
  DeviceBlockSliceCounts slice_counts;  // without counts if the number of slices was given
  std::byte* products = nullptr;
  std::byte* sums = nullptr;
  std::byte* scratch = nullptr;
};

// All memory of the batch items that are multiplied at once.
struct DeviceMemory {
  struct Side {
    VectorRange* ranges = nullptr;
    VectorNorm* norms = nullptr;             // if a step finds norms
    VectorMagnitudes* magnitudes = nullptr;  // of real FP64 operands whose checked products norms scale
    MergedSummary* summaries = nullptr;      // if the operand has more than most_ranges_selected vectors
  };
  Side a;
  Side b;
  DeviceSelection* selections = nullptr;
  std::byte* scratch = nullptr;  // of fused kernels, large enough for every candidate
  DeviceCounters counters;       // counters in `scratch` of the candidate with the most counters
  // Slices, sums and scratch of the blocks of each candidate, one after the other.
  std::byte* blocks = nullptr;
  std::size_t block_bytes = 0;
  DeviceCheckedMemory checked;
  DeviceOzaki1Memory ozaki1;
};
DeviceMemory lay_out_device(const Plan& plan, std::span<const Step> steps, const Blocking& blocking,
                            Workspace& workspace);

// ---------------------------------------------------------------- host

// Ranges of the rows of op(A) and of the columns of op(B).
struct RangeMemory {
  std::span<VectorRange> rows;
  std::span<VectorRange> columns;
};
RangeMemory lay_out_ranges(const Plan& plan, Workspace& workspace);

// Norms of the same vectors, for plans with candidates by norms; else empty.
struct NormMemory {
  std::span<VectorNorm> rows;
  std::span<VectorNorm> columns;
};
NormMemory lay_out_norms(const Plan& plan, Workspace& workspace);

// Memory of one block of C: slices of both sides, sums, and the engine's scratch.
struct BlockMemory {
  Slices a;
  Slices b;
  Accumulators sums;
  std::byte* scratch = nullptr;
  std::span<float> weights_a;  // of the slices that are scaled by maxima (split/maxima.hpp); else empty
  std::span<float> weights_b;
};
BlockMemory lay_out_block(const Plan& plan, const Program& program, const Blocking& blocking,
                          Workspace& workspace);

// Bit lengths of the largest element in each row and each column of |A||B|. ScaleRule::product takes the
// scales from them.
struct ProductBitMemory {
  std::span<std::int32_t> rows;
  std::span<std::int32_t> columns;
};
ProductBitMemory lay_out_product_bits(const Plan& plan, Workspace& workspace);

// Memory of the element checks of a block (execute/host/checked.hpp).
struct CheckMemory {
  std::span<RoundingBound> rounding_bounds_a;
  std::span<RoundingBound> rounding_bounds_b;
  // Memory of the equilibration (split/equilibrate.hpp): ranges of the elements at every inner index, and
  // factors.
  std::span<InnerRange> inner_a;
  std::span<InnerRange> inner_b;
  std::span<double> factors_a;
  std::span<double> factors_b;
  std::uint8_t* states = nullptr;  // ElementCheck::State of every element of a block
  std::byte* exact_scratch = nullptr;
};
CheckMemory lay_out_check(const Plan& plan, const Blocking& blocking, Workspace& workspace);

// Rows and columns of the tile of C on which checked candidates are tried to find the fastest one.
inline constexpr std::int64_t first_tile = 64;

// Takes the scratch of exact sums.
std::byte* lay_out_exact_sums(const Plan& plan, Workspace& workspace);

// Takes memory for the list of elements in a block of C that are not accepted on the grid of a reproducible
// product.
std::byte* lay_out_refused_elements(const Plan& plan, const Blocking& blocking, Workspace& workspace);

// Takes memory for the states of all elements of C.
std::uint8_t* lay_out_element_states(const Plan& plan, Workspace& workspace);

// Vectors of B that one step of Ozaki scheme I multiplies: one tile of an engine.
inline constexpr std::int64_t ozaki1_vectors_at_once = Slices::vector_multiple;

struct Ozaki1Memory {
  SuccessiveSplit a;
  SuccessiveSplit b;
  double* weights;         // weights of the inner indices in Algorithm 3 of dgemm-tc (arith/successive.hpp)
  Scaled* row_sums;        // weighted sums of A's rows
  Scaled* slice_row_sums;  // weighted sums of the rows of one slice
  // Number of slices that each row needs. -s means that the residual is 0 after s slices.
  std::int32_t* slice_counts;
  std::byte* products;  // products of ozaki1_vectors_at_once vectors of one slice of B
  std::byte* sums;      // sums of the same elements as `products`
  std::byte* scratch;   // scratch memory of the engine
};
Ozaki1Memory lay_out_ozaki1(const Plan& plan, const Program& program, const Blocking& blocking,
                            Workspace& workspace);

// Returns the scratch bytes of the host's native product in a fixed order, at most one block of C for each
// thread.
std::size_t native_scratch_bytes(const Plan& plan, const Candidate& candidate, const Blocking& blocking);

}  // namespace kintsugi::core
