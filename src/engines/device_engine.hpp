// Interface of an engine with its own memory. The steps of a call are work for a queue. No step waits for the
// device, and decisions that depend on data are made on the device. All pointers are device pointers unless a
// comment says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "engines/device_checks.hpp"

namespace kintsugi::core {

class DeviceOzaki1;
class DeviceSharedKernels;
class DeviceTransfers;

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // Calls steps(), which issues the launches of one call. They may be sent to the device all at once, after
  // steps() has returned.
  virtual void launch_together(const Queue& queue, const std::function<void()>& steps) const = 0;
  // Creates everything that later calls need but cannot create while a stream is captured.
  virtual void prepare() const = 0;
  // Returns nullptr if there is not enough memory. If work for the queue is captured, the memory stays the
  // captured graph's, and the graphs of the device have at most `graph_limit` bytes together (0: no limit).
  virtual std::byte* allocate(const Queue& queue, std::size_t bytes, std::size_t graph_limit) const = 0;
  virtual void deallocate(const Queue& queue, void* pointer) const noexcept = 0;
  // Frees memory that was deallocated but kept for later calls.
  virtual void release_kept_memory() const noexcept = 0;
  virtual void copy_to_device(const Queue& queue, void* target, const void* host,
                              std::size_t bytes) const = 0;
  virtual void copy_to_host(const Queue& queue, void* host, const void* source, std::size_t bytes) const = 0;
  virtual void copy_on_device(const Queue& queue, void* target, const void* source,
                              std::size_t bytes) const = 0;
  virtual void clear(const Queue& queue, void* target, std::size_t bytes) const = 0;
  virtual void synchronize(const Queue& queue) const = 0;
  // Waits for all queues of the device. synchronize_quietly() ignores errors.
  virtual void synchronize() const = 0;
  virtual void synchronize_quietly() const noexcept = 0;
};

// Capabilities, memory needs and expected times of the current device's kernels.
class DeviceCapabilities {
 public:
  virtual ~DeviceCapabilities() = default;

  // Nominal number of rows, and of columns, of C that multiply() takes at once. Blocks of products of
  // floating-point slices are multiples of it; so the order of additions does not depend on the workspace.
  // Integer sums are the same in any order, and more of them may be computed at once.
  virtual std::int64_t tile() const = 0;
  // Inner indices after which partial sums should be added outside the matrix unit, for schemes that leave
  // this to the caller.
  virtual std::int64_t preferred_block() const = 0;
  // Bytes of scratch memory that multiply() needs.
  virtual std::size_t scratch_bytes(const Schedule& schedule, FormatId format, std::int64_t rows,
                                    std::int64_t columns) const = 0;
  // Largest number of bytes of scratch memory that native() can use, a multiple of 256.
  virtual std::size_t native_scratch_bytes() const = 0;
  // True if multiply_fused() takes this schedule with the sums of this accumulator. Otherwise multiply()
  // writes the sums to memory, and a recombination reads them.
  virtual bool fuses(const Schedule& schedule, FormatId format, Accumulator accumulator,
                     ElementType type) const = 0;
  virtual std::size_t fused_scratch_bytes(const DeviceShape& shape) const = 0;
  // Counters that multiply_fused() keeps in its scratch memory.
  virtual DeviceCounters fused_counters(const DeviceShape& shape, std::byte* scratch) const = 0;
  // True if multiply() exits early if its condition does not hold. cuBLAS calls cannot: they always run.
  virtual bool skips(const Schedule& schedule, FormatId format) const = 0;
  // True if complex elements can be split by this rule of residues and recombined. Otherwise they are
  // multiplied as an embedding (base/embedding.hpp).
  virtual bool takes_complex_elements(const SplitRule& rule) const = 0;
  // True if operands of this type, which `rule` splits into residues, can be split and recombined for one
  // step of Strassen's algorithm (arith/residue/strassen.hpp).
  virtual bool takes_strassen(ElementType type, const SplitRule& rule) const = 0;
  // Largest number of real moduli that recombine_checked() takes.
  virtual int max_checked_moduli() const = 0;
  // Nothing if the device was never measured.
  virtual std::optional<DeviceTimes> expected_times(const DeviceShape& shape) const = 0;
  virtual DeviceThresholds thresholds() const = 0;
  // True if multiply_unsliced() is about as fast as the vendor library on large matrices of this type.
  virtual bool has_native_on_tensor_cores(ElementType type) const = 0;
  // Expected microseconds of a product by the vendor library. Nothing if the architecture was never measured.
  virtual std::optional<double> vendor_time(const NativeShape& shape) const = 0;
};

// Ranges and norms of operands, selection of a candidate, and splits.
class DeviceSplits {
 public:
  virtual ~DeviceSplits() = default;

  // Finds exponents and flags of all vectors of all batch items; for a side with norms also depths. Does not
  // set the scales: split() does.
  virtual void find_ranges(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                           const DeviceScalars& scalars) const = 0;
  // Does the work of find_ranges(), and finds norms of all vectors.
  virtual void find_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                          const DeviceScalars& scalars) const = 0;
  // Like find_norms(), but the norms serve scales alone, not proofs: only VectorNorm::bits may be set.
  virtual void find_scaling_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                                  const DeviceScalars& scalars) const = 0;
  // Summarizes the ranges of each batch item of a side. A selection by ranges alone then reads the summaries
  // instead of every vector's range.
  virtual void summarize(const Queue& queue, const DeviceSide& side, MergedSummary* summaries) const = 0;
  // Selects a candidate for each batch item, writes one selection per item, and counts them in the report.
  virtual void select(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                      const DeviceScalars& scalars, const DeviceCandidates& candidates,
                      DeviceSelection* selection, const DeviceReporting& reporting) const = 0;
  // Computes one or two splits. Both are computed in one launch if one kernel can do so or if they are small.
  // An operand that serves several batch items is split if the candidate is selected for any of them. Rules
  // that scale by norms need norms.
  virtual void split(const Queue& queue, std::span<const DeviceSplit> splits,
                     const DeviceCondition& condition) const = 0;
  // True if split_by_norms() takes this split of one batch item.
  virtual bool finds_norms(const DeviceSplit& split) const = 0;
  // Does the work of find_norms() and split() with one read of the operands, before the
  // selection. For rules that scale by norms. A vector's norm can rule out a proof of `coefficient`
  // (rules_proof_out() of arith/residue/norm_proof.hpp). Then the candidate is not selected and its slices
  // are not used; thread blocks that know this stop writing slices.
  virtual void split_by_norms(const Queue& queue, std::span<const DeviceSplit> splits,
                              const DeviceScalars& scalars, double coefficient,
                              DeviceSelection* selection) const = 0;
  // Finds sums of the errors of rounding each vector's scaled elements to integers. The split must have set
  // the vectors' scales.
  virtual void find_rounding_errors(const Queue& queue, const DeviceRoundingErrors& a,
                                    const DeviceRoundingErrors& b,
                                    const DeviceCondition& condition) const = 0;
};

// Products of slices, their recombination, and products of the operands themselves.
class DeviceProducts {
 public:
  virtual ~DeviceProducts() = default;

  // Multiplies slices. sums.rows is a multiple of 16; sums in rows from a.vectors on have no meaning. `fit`
  // has the scale of the residuals, for joint groups whose exponent is fitted_exponent.
  virtual void multiply(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                        const Accumulators& sums, std::byte* scratch, const DeviceFit* fit,
                        const DeviceCondition& condition) const = 0;
  // Does the work of multiply() and recombine_weighted() in one kernel, without sums in memory. The tile may
  // have any size, which does not change a bit of the result.
  virtual void multiply_fused(const Queue& queue, const DeviceFusedProduct& product,
                              std::byte* scratch) const = 0;
  // Adds the numbers of tiles to the report, for slices with exponents per tile.
  virtual void count_tiles(const Queue& queue, const DeviceTileCount& count, DeviceReport* report) const = 0;
  // Computes alpha * sum + beta * C with one rounding, and special values, as the host's recombinations do.
  // An exponent may be fitted_exponent, which stands for the exponent of the fit in the tile's selection.
  virtual void recombine_weighted(const Queue& queue, const Accumulators& sums,
                                  std::span<const int> exponents, const DeviceTile& tile) const = 0;
  virtual void recombine_residues(const Queue& queue, const Accumulators& sums, const ResidueSystem& system,
                                  const DeviceTile& tile) const = 0;
  // Sums elements exactly and rounds each once, special values included.
  virtual void multiply_exactly(const Queue& queue, const DeviceTile& tile) const = 0;
  // Computes the whole product in the elements' own arithmetic, without slices. FP32 elements are summed in
  // ascending order of k with fused multiply-adds, FP64 elements in an order that depends on k alone. C
  // becomes NaN if the selection is `none`.
  virtual void multiply_unsliced(const Queue& queue, const DeviceTile& tile) const = 0;
  // Does the work of select() and then of multiply_unsliced(), in one launch if that takes less time.
  // select() gets the tile's sides and `reporting.overlaps_products`; multiply_unsliced() gets a condition on
  // one of the selections.
  virtual void select_or_multiply_unsliced(const Queue& queue, const DeviceTile& tile,
                                           const DeviceCandidates& candidates, DeviceSelection* selection,
                                           const DeviceReporting& reporting) const = 0;
  // Computes beta C.
  virtual void scale(const Queue& queue, const DeviceMatrix& c, std::int64_t item,
                     const DeviceScalars& scalars, const DeviceCondition& condition) const = 0;
  // Multiplies by the vendor library. Returns false, and does nothing, if the library needs more scratch
  // memory, or if it may not keep the contract (DeviceBlasProduct::keeps_contract).
  virtual bool native(const Queue& queue, const DeviceBlasProduct& product, std::byte* scratch) const = 0;
};

// Checked candidates of a fallback chain. They compute a block of C one after the other, until few of its
// elements are open; these are recomputed.
class DeviceChecks {
 public:
  virtual ~DeviceChecks() = default;

  // Selects a candidate of the chain for a batch item, if the chain's first candidate was selected for it.
  // The candidate is the one that is expected to be cheapest, by a sample of elements of the product. The
  // ranges must be known. `state` is overwritten. The report, if any, counts the item with its new candidate.
  // For the accuracy `exact` the choice changes no bit of a result.
  virtual void choose_checked(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                              const DeviceCheckedChain& chain, DeviceSelection* selection,
                              DeviceCheckState* state, DeviceReport* report) const = 0;
  // Begins a block with the candidate of the item's selection. Steps of the block have state->current as
  // their condition.
  virtual void begin_checks(const Queue& queue, const DeviceSelection* selection,
                            DeviceCheckState* state) const = 0;
  // Does the work of recombine_residues() for elements that pass the check. Elements that fail it keep their
  // values (undefined if beta is 0) and are marked as open. If another candidate has computed the block
  // before, elements that are not open keep their values as well; if beta is 0, they may also be written
  // again, with the same values.
  virtual void recombine_checked(const Queue& queue, const Accumulators& sums, const ResidueSystem& system,
                                 const DeviceCheck& check, const DeviceTile& tile,
                                 const DeviceOpenElements& open) const = 0;
  // Must be called when candidate `index` of the chain has computed all tiles of a block of `elements`
  // elements. Does nothing if that is not the block's current candidate. Else makes the next candidate
  // current whose products take less time than exact sums of the open elements. Without such a candidate the
  // block's chain ends.
  virtual void advance_checks(const Queue& queue, const DeviceCheckedChain& chain, int index,
                              std::int64_t elements, DeviceCheckState* state) const = 0;
  // Last step of a block: sums each open element exactly or, if allowed, in its own arithmetic, and rounds it
  // once; also writes special values. The report counts the elements as recomputed.
  virtual void recompute(const Queue& queue, const DeviceTile& block, const DeviceOpenElements& open,
                         DeviceReport* report) const = 0;
};

class DeviceEngine : public DeviceMemory,
                     public DeviceCapabilities,
                     public DeviceSplits,
                     public DeviceProducts,
                     public DeviceChecks {
 public:
  // Returns the kernels of Ozaki scheme I (engines/device_ozaki1.hpp); nullptr if there are none.
  virtual const DeviceOzaki1* ozaki1() const { return nullptr; }
  // Returns the kernels that candidates share (engines/device_moduli.hpp); nullptr if there are none.
  virtual const DeviceSharedKernels* shared_kernels() const { return nullptr; }
  // Returns the copies of pageable memory (engines/device_context.hpp); nullptr if there are none.
  virtual const DeviceTransfers* transfers() const { return nullptr; }
};

}  // namespace kintsugi::core
