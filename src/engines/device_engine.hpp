// What an engine with a memory of its own does: the steps of a call as work for a queue. All pointers are the
// device's unless they say otherwise, nothing waits for the device, and what depends on the data is decided
// there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engines/device.hpp"

namespace kintsugi::core {

class DeviceOzaki1;

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // Makes what later calls need and may not make while a stream is captured.
  virtual void prepare() const = 0;
  virtual std::byte* allocate(const Queue& queue, std::size_t bytes) const = 0;  // nullptr: there is no more
  virtual void deallocate(const Queue& queue, void* pointer) const noexcept = 0;
  virtual void copy_to_device(const Queue& queue, void* target, const void* host,
                              std::size_t bytes) const = 0;
  virtual void copy_to_host(const Queue& queue, void* host, const void* source, std::size_t bytes) const = 0;
  virtual void copy_on_device(const Queue& queue, void* target, const void* source,
                              std::size_t bytes) const = 0;
  virtual void clear(const Queue& queue, void* target, std::size_t bytes) const = 0;
  virtual void synchronize(const Queue& queue) const = 0;
  // Waits for all queues of the device; quietly: whatever it answers.
  virtual void synchronize() const = 0;
  virtual void synchronize_quietly() const noexcept = 0;
};

// What the kernels of the current device can do, need and are expected to take.
class DeviceCapabilities {
 public:
  virtual ~DeviceCapabilities() = default;

  // Rows and columns of C that multiply() takes at most at once. Blocks of products of floating-point slices
  // are multiples of it, so that how they are added does not depend on the memory there is; integers have the
  // same sums in any.
  virtual std::int64_t tile() const = 0;
  // Indices of k after which partial sums had better be added outside the matrix unit, where a scheme lets
  // the caller choose.
  virtual std::int64_t preferred_block() const = 0;
  // Bytes of scratch for multiply(), and the most that native() has use for, a multiple of 256.
  virtual std::size_t scratch_bytes(const Schedule& schedule, FormatId format, std::int64_t rows,
                                    std::int64_t columns) const = 0;
  virtual std::size_t native_scratch_bytes() const = 0;
  // Whether it has multiply_fused() for this schedule with the sums of that accumulator; else its products
  // leave as sums.
  virtual bool fuses(const Schedule& schedule, FormatId format, Accumulator accumulator,
                     ElementType type) const = 0;
  virtual std::size_t fused_scratch_bytes(const DeviceShape& shape) const = 0;
  // Whether multiply() exits early where its condition does not hold: cuBLAS calls always run.
  virtual bool skips(const Schedule& schedule, FormatId format) const = 0;
  // Whether complex elements can be split by that rule of residues and recombined; else their parts are real
  // numbers.
  virtual bool takes_complex_elements(const SplitRule& rule) const = 0;
  // Whether split_by_norms() takes the split, which is of one batch item.
  virtual bool finds_norms(const DeviceSplit& split) const = 0;
  // Nothing of a device that was never measured.
  virtual std::optional<DeviceTimes> expected_times(const DeviceShape& shape) const = 0;
  virtual DeviceThresholds thresholds() const = 0;
  // Whether multiply_unsplit() is about as quick as the vendor's products of large matrices of the type.
  virtual bool has_quick_native(ElementType type) const = 0;
  // Nothing of an architecture that was never measured.
  virtual std::optional<NativeTimes> native_times(const NativeShape& shape) const = 0;
};

// Ranges and norms of operands, selection of a candidate by them, and splits.
class DeviceSplits {
 public:
  virtual ~DeviceSplits() = default;

  // Exponents and flags of all vectors of all batch items; their scales are set by split(). Typical exponents
  // too, of a side that has norms.
  virtual void find_ranges(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                           const DeviceScalars& scalars) const = 0;
  // Norms of all vectors, of ranges and typical exponents that are known.
  virtual void find_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                          const DeviceScalars& scalars) const = 0;
  // Summaries of the ranges of each batch item of a side: selection by ranges alone reads these in their
  // place.
  virtual void summarize(const Queue& queue, const DeviceSide& side, RangeSummary* summaries) const = 0;
  // Selects a candidate for each batch item, into as many selections; the report counts them all.
  virtual void select(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                      const DeviceScalars& scalars, const DeviceCandidates& candidates,
                      DeviceSelection* selection, const DeviceReporting& reporting) const = 0;
  // One or two of them, in one launch where there is a kernel for both or they are small. An operand that
  // serves several batch items is split where the candidate is selected for any of them. Rules that scale by
  // norms ask for them.
  virtual void split(const Queue& queue, std::span<const DeviceSplit> splits,
                     const DeviceCondition& condition) const = 0;
  // Before selection: find_ranges(), find_norms() and split() of rules that scale by norms, with one read of
  // the operands. Where a vector rules out that the coefficient is proved (arith/residue/norm_proof.hpp) no
  // step will ask for slices: thread blocks that split it, or that see in time that it is ruled out, write
  // none.
  virtual void split_by_norms(const Queue& queue, std::span<const DeviceSplit> splits,
                              const DeviceScalars& scalars, double coefficient,
                              DeviceSelection* selection) const = 0;
  // Rounding-error bounds of all vectors as residues under these rules round them, of ranges that are known.
  virtual void find_rounding_bounds(const Queue& queue, const DeviceRoundingBounds& a,
                                    const DeviceRoundingBounds& b,
                                    const DeviceCondition& condition) const = 0;
};

// Products of slices, their recombination, and products of the operands themselves.
class DeviceProducts {
 public:
  virtual ~DeviceProducts() = default;

  // sums.rows is a multiple of 16, `rows` of them count. `fit`: of joint groups whose exponent is
  // fitted_exponent.
  virtual void multiply(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                        const Accumulators& sums, std::byte* scratch, const DeviceFit* fit,
                        const DeviceCondition& condition) const = 0;
  // multiply() and recombine_weighted() in one step, for tiles of any size, on which no bit depends: no sum
  // goes through memory.
  virtual void multiply_fused(const Queue& queue, const DeviceFusedProduct& product,
                              std::byte* scratch) const = 0;
  // alpha * sum + beta * C with one rounding as the host's recombinations have it, special values included.
  // Exponents may be fitted_exponent, of the tile's selection.
  virtual void recombine_weighted(const Queue& queue, const Accumulators& sums,
                                  std::span<const int> exponents, const DeviceTile& tile) const = 0;
  virtual void recombine_residues(const Queue& queue, const Accumulators& sums, const ResidueSystem& system,
                                  const DeviceTile& tile) const = 0;
  // As recombine_residues, of the elements that show what is checked; the others are left as they are (with
  // beta = 0: anything) and added to `open`.
  virtual void recombine_checked(const Queue& queue, const Accumulators& sums, const ResidueSystem& system,
                                 const DeviceCheck& check, const DeviceTile& tile,
                                 const DeviceOpenElements& open) const = 0;
  // Every element summed exactly and rounded once, special values included: of all the tile, or where
  // open.count is given of those alone, which the report counts as recomputed, and which may be summed
  // `plainly`.
  virtual void multiply_exactly(const Queue& queue, const DeviceTile& tile, const DeviceOpenElements& open,
                                DeviceReport* report) const = 0;
  // The whole product in the elements' own arithmetic, FP32 sums in ascending order with fused multiply-add,
  // FP64 sums in an order that belongs to k alone, every sum tested as finish_native() tests them; C becomes
  // NaN where the selection is `none`.
  virtual void multiply_unsplit(const Queue& queue, const DeviceTile& tile) const = 0;
  // beta C.
  virtual void scale(const Queue& queue, const DeviceMatrix& c, std::int64_t item,
                     const DeviceScalars& scalars, const DeviceCondition& condition) const = 0;
  // Returns false, with nothing done, where the vendor library cannot do with so little scratch.
  virtual bool native(const Queue& queue, const DeviceBlasProduct& product, std::byte* scratch) const = 0;
  // The last step of native sums under a contract: C = alpha sums + beta C of the tile's batch items. `sums`
  // has A B of the first of these and of those behind it, or is C itself, which has alpha A B then, and beta
  // is 0. Elements that underflow or overflow on the way may have spoiled are computed again.
  virtual void finish_native(const Queue& queue, const DeviceTile& tile, const DeviceMatrix& sums) const = 0;
};

class DeviceEngine : public DeviceMemory,
                     public DeviceCapabilities,
                     public DeviceSplits,
                     public DeviceProducts {
 public:
  // Its kernels of Ozaki scheme I (engines/device_ozaki1.hpp); nullptr: it has none.
  virtual const DeviceOzaki1* ozaki1() const { return nullptr; }
};

}  // namespace kintsugi::core
