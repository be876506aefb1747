// The steps of a call on a device, and what the current device's kernels take. A step is work for a queue. No
// step waits for the device, and decisions that depend on data are made on the device. All pointers are
// device pointers unless a comment says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engines/cuda/ozaki1/step_data.hpp"
#include "engines/cuda/recombine/checked/checks.hpp"
#include "engines/cuda/select/selected_moduli.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// Capabilities, memory needs and expected times of the current device's kernels.

// Nominal number of rows, and of columns, of C that multiply() takes at once. Blocks of products of
// floating-point slices are multiples of it; so the order of additions does not depend on the workspace.
// Integer sums are the same in any order, and more of them may be computed at once.
inline constexpr std::int64_t product_tile = 4096;
// Inner indices after which partial sums should be added outside the matrix unit, for schemes that leave this
// to the caller.
inline constexpr std::int64_t preferred_block = 1024;
// Bytes of the workspace of a cuBLAS call: as many as cuBLAS would allocate itself. Every call gets memory of
// its own, so that its results do not depend on other streams.
inline constexpr std::size_t vendor_workspace_bytes = std::size_t{32} << 20;

// Bytes of scratch memory that multiply() needs.
std::size_t product_scratch_bytes(const Schedule& schedule, FormatId format, std::int64_t rows,
                                  std::int64_t columns);
// True if a fused kernel takes this schedule with the sums of this accumulator. Otherwise multiply() writes
// the sums to memory, and a recombination reads them.
bool fuses(const Schedule& schedule, FormatId format, Accumulator accumulator, ElementType type);
// True if multiply() adds the schedule's sums as this accumulator does, by a kernel that is compiled at its
// first use. Only schemes that the caller names have such sums.
bool compiles(const Schedule& schedule, FormatId format, Accumulator accumulator);
// Compiles the kernels that multiply() needs for tiles with these numbers of rows and columns of sums, if it
// needs such kernels. A captured call cannot do so.
void prepare_multiply(const Schedule& schedule, FormatId format, Accumulator accumulator,
                      std::span<const std::int64_t> rows, std::span<const std::int64_t> columns);
// True if multiply() exits early if its condition does not hold. cuBLAS calls cannot: they always run.
bool skips(const Schedule& schedule, FormatId format);
// True if complex elements can be split by this rule of residues and recombined. Otherwise they are
// multiplied as an embedding (base/embedding.hpp).
bool takes_complex_elements(const SplitRule& rule);
// Largest number of real moduli that recombine_checked() takes.
int max_checked_moduli();
// True if real candidates whose rules are `least` and `most`, and those between them, may share kernels for
// operands of this type: split_selected(), multiply_selected() and recombine_selected().
bool shares_kernels(ElementType type, const SplitRule& least, const SplitRule& most);
// True if split_selected() is a single launch for vectors of this length, along rows or columns in memory.
bool splits_selected_at_once(std::int64_t length);
// Nothing if the device was never measured.
std::optional<DeviceTimes> expected_times(const DeviceShape& shape);
DeviceThresholds thresholds();
// True if native FP64 products are so slow that no kernel is slower than another: a card for graphics.
bool has_few_fp64_units();
// True if multiply_unsliced() is about as fast as the vendor library on large FP64 matrices, real or complex.
bool has_fast_native(ElementType type);
// Expected microseconds of a product by the vendor library. Nothing if the architecture was never measured.
std::optional<double> expected_vendor_time(const NativeShape& shape);

// Ranges and norms of operands, and selection of a candidate.

// Finds exponents and flags of all vectors of all batch items; for a side with norms also depths. Does not
// set the scales: split() does.
void find_ranges(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars);
// Does the work of find_ranges(), and finds norms of all vectors.
void find_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars);
// Like find_norms(), but the norms serve scales alone, not proofs: only VectorNorm::bits may be set.
void find_scaling_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                        const DeviceScalars& scalars);
// Summarizes the ranges of each batch item of a side. A selection by ranges alone then reads the summaries
// instead of every vector's range.
void summarize(const Queue& queue, const DeviceSide& side, MergedSummary* summaries);
// Selects a candidate for each batch item, writes one selection per item, and counts them in the report.
void select(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars,
            const DeviceCandidates& candidates, DeviceSelection* selection, const DeviceReporting& reporting);
// The same for candidates that norms prove. A report must be that of a LongDeviceReport.
void select_by_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                     const DeviceScalars& scalars, const NormCandidates& candidates,
                     DeviceSelection* selection, const DeviceReporting& reporting);

// Splits.

// Computes one or two splits. Both are computed in one launch if one kernel can do so or if they are small.
// An operand that serves several batch items is split if the candidate is selected for any of them. Rules
// that scale by norms need norms.
void split(const Queue& queue, std::span<const DeviceSplit> splits, const DeviceCondition& condition);
// True if split_by_norms() takes this split of one batch item.
bool finds_norms(const DeviceSplit& split);
// Does the work of find_norms() and split() with one read of the operands, before the selection. For rules
// that scale by norms. A vector's norm can rule out a proof of `coefficient` (rules_proof_out() of
// arith/residue/norm_proof.hpp). Then the candidate is not selected and its slices are not used; thread
// blocks that know this stop writing slices.
void split_by_norms(const Queue& queue, std::span<const DeviceSplit> splits, const DeviceScalars& scalars,
                    double coefficient, DeviceSelection* selection);
// split() for candidates that share kernels. `rules` are theirs, the fewest moduli first. The splits have the
// last rule, and memory for the slices of the most moduli.
void split_selected(const Queue& queue, std::span<const DeviceSplit> splits, std::span<const SplitRule> rules,
                    const SelectedModuli& selected);
// Finds sums of the errors of rounding each vector's scaled elements to integers. The split must have set the
// vectors' scales.
void find_rounding_errors(const Queue& queue, const DeviceRoundingErrors& a, const DeviceRoundingErrors& b,
                          const DeviceCondition& condition);

// Products of slices, and their recombination.

// Multiplies slices. Sums are those of the accumulator. sums.rows is a multiple of 16; sums in rows from
// a.vectors on have no meaning. `fit` has the scale of the residuals, for joint groups whose exponent is
// fitted_exponent.
void multiply(const Queue& queue, const Schedule& schedule, Accumulator accumulator, const Slices& a,
              const Slices& b, const Accumulators& sums, std::byte* scratch, const DeviceFit* fit,
              const DeviceCondition& condition);
// multiply() for candidates that share the kernel. `schedule`, slices and sums are those of the most moduli.
// The first slices are multiplied, as many as moduli are selected.
void multiply_selected(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                       const Accumulators& sums, const SelectedModuli& selected);
// Adds the numbers of tiles to the report, for slices with exponents per tile.
void count_tiles(const Queue& queue, const DeviceTileCount& count, DeviceReport* report);
// Computes alpha * sum + beta * C with one rounding, and special values, as the host's recombinations do. An
// exponent may be fitted_exponent, which stands for the exponent of the fit in the tile's selection.
void recombine_weighted(const Queue& queue, const Accumulators& sums, std::span<const int> exponents,
                        const DeviceTile& tile);
void recombine_residues(const Queue& queue, const Accumulators& sums, const ResidueSystem& system,
                        const DeviceTile& tile);
// recombine_residues() for candidates that share kernels. The tile's condition is not used.
void recombine_selected(const Queue& queue, const Accumulators& sums, const DeviceTile& tile,
                        const SelectedModuli& selected);

// Checked candidates of a fallback chain. They compute a block of C one after the other, until few of its
// elements are open; these are recomputed.

// Selects a candidate of the chain for a batch item, if the chain's first candidate was selected for it. The
// candidate is the one that is expected to be cheapest, by a sample of elements of the product. The ranges
// must be known. `state` is overwritten. The report, if any, counts the item with its new candidate. For the
// accuracy `exact` the choice changes no bit of a result.
void choose_checked(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                    const DeviceCheckedChain& chain, DeviceSelection* selection, DeviceCheckState* state,
                    DeviceReport* report);
// Begins a block with the candidate of the item's selection. Steps of the block have state->current as their
// condition.
void begin_checks(const Queue& queue, const DeviceSelection* selection, DeviceCheckState* state);
// Does the work of recombine_residues() for elements that pass the check. Elements that fail it keep their
// values (undefined if beta is 0) and are marked as open. If another candidate has computed the block before,
// elements that are not open keep their values as well; if beta is 0, they may also be written again, with
// the same values.
void recombine_checked(const Queue& queue, const Accumulators& sums, const ResidueSystem& system,
                       const DeviceCheck& check, const DeviceTile& tile, const DeviceOpenElements& open);
// Must be called when candidate `index` of the chain has computed all tiles of a block of `elements`
// elements. Does nothing if that is not the block's current candidate. Else makes the next candidate current
// whose products take less time than exact sums of the open elements. Without such a candidate the block's
// chain ends.
void advance_checks(const Queue& queue, const DeviceCheckedChain& chain, int index, std::int64_t elements,
                    DeviceCheckState* state);
// Last step of a block: sums each open element exactly or, if allowed, in its own arithmetic, and rounds it
// once; also writes special values. The report counts the elements as recomputed.
void recompute(const Queue& queue, const DeviceTile& block, const DeviceOpenElements& open,
               DeviceReport* report);

// Ozaki scheme I.

// Computes the slices of an operand.
void split_successively(const Queue& queue, const DeviceSuccessiveSplit& split,
                        const DeviceCondition& condition);
// Computes the weights |B| e (DeviceRowSliceCounts::weights) for every block of columns of C.
void weigh_inner_indices(const Queue& queue, const DeviceSide& b, const DeviceBlockSliceCounts& slice_counts,
                         double* weights, const DeviceCondition& condition);
void find_slice_counts(const Queue& queue, const DeviceRowSliceCounts& rows,
                       const DeviceCondition& condition);
// True if kernels of ours multiply slices of this format, and FP32 sums the products of `k_block` inner
// indices without an error. Their thread blocks end after the products that the slice counts require.
bool has_slice_products(FormatId format, std::int64_t k_block);
// True if add_slice_products() sums products over k of slices of `bits` bits, too.
bool adds_slice_products(FormatId format, std::int64_t k, std::int64_t k_block, int bits);
// Computes the FP64 sums of all products of slices that the slice counts require.
void add_slice_products(const Queue& queue, const DeviceProductSums& sums, const Slices& a, const Slices& b);
// Multiplies slices first_a ... of A by slice `slice_b` of B, as far as the slice counts require these
// products. Writes them into the first groups of `products`, laid out as by multiply().
void multiply_counted(const Queue& queue, const DeviceProductSums& sums, const Slices& a, const Slices& b,
                      const Accumulators& products, int first_a, int slice_b);
// Adds the products that multiply_counted() has written to the sums.
void add_products(const Queue& queue, const DeviceProductSums& sums, const Accumulators& products,
                  int first_a, int slice_b);
// Computes C from the sums.
void finish_sums(const Queue& queue, const DeviceProductSums& sums);
void finish_item(const Queue& queue, const DeviceOzaki1Item& item);

// Products of the operands themselves, and beta C.

// Sums elements exactly and rounds each once, special values included.
void multiply_exactly(const Queue& queue, const DeviceTile& tile);
// Computes the whole product in the elements' own arithmetic, without slices. FP32 elements are summed in
// ascending order of k with fused multiply-adds, FP64 elements in an order that depends on k alone. C becomes
// NaN if the selection is `none`.
void multiply_unsliced(const Queue& queue, const DeviceTile& tile);
// Does the work of select() and then of multiply_unsliced(), in one launch if that takes less time. select()
// gets the tile's sides and `reporting.overlaps_products`; multiply_unsliced() gets a condition on one of the
// selections.
void select_or_multiply_unsliced(const Queue& queue, const DeviceTile& tile,
                                 const DeviceCandidates& candidates, DeviceSelection* selection,
                                 const DeviceReporting& reporting);
// Computes beta C.
void scale(const Queue& queue, const DeviceMatrix& c, std::int64_t item, const DeviceScalars& scalars,
           const DeviceCondition& condition);
// Multiplies by the vendor library. Returns false, and does nothing, if the library needs more scratch
// memory, or if it may not keep the contract (DeviceBlasProduct::keeps_contract).
bool multiply_by_vendor(const Queue& queue, const DeviceBlasProduct& product, std::byte* scratch);

}  // namespace kintsugi::core::cuda
