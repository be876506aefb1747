// What an engine with a memory of its own does: the steps of a call as work for a queue. All pointers are the device's
// unless they say otherwise, nothing waits for the device, and what depends on the data is decided there.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "arith/complex_residue.hpp"
#include "arith/range.hpp"
#include "arith/split_rule.hpp"
#include "base/memory.hpp"
#include "base/queue.hpp"
#include "recombine/accumulators.hpp"
#include "schedule/schedule.hpp"
#include "splits/ranges.hpp"
#include "splits/slices.hpp"

namespace kintsugi::core {

enum class EntryType : std::uint8_t { f32, f64, c32, c64 };

// One matrix of every entry of a batch.
struct DeviceMatrix {
  const void* data = nullptr;  // strided: of entry 0; else an array of pointers, in device memory
  bool pointers = false;
  EntryType type = EntryType::f32;
  std::int64_t batch_stride = 0;  // in elements
  std::int64_t rows = 0;          // an operand: vectors, which are rows of op(A) or columns of op(B); C: m
  std::int64_t columns = 0;       // an operand: k; C: n
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
  // Complex operands are read as base/embedding.hpp says: op(B) has two real vectors for each column.
  bool right = false;
  bool conjugated = false;

  constexpr bool complex() const { return type == EntryType::c32 || type == EntryType::c64; }
  // Of real vectors, and their length.
  constexpr std::int64_t vectors() const { return complex() && right ? 2 * rows : rows; }
  constexpr std::int64_t length() const { return complex() ? 2 * columns : columns; }
};

// alpha and beta of the matrices' type: values, or where they lie in device memory.
struct DeviceScalars {
  std::complex<double> alpha = 1;
  std::complex<double> beta = 0;
  const void* device_alpha = nullptr;
  const void* device_beta = nullptr;

  bool on_device() const { return device_alpha != nullptr; }
};

// What an entry of the batch turned out to be, in device memory; written by choose().
struct DeviceChoice {
  static constexpr std::int32_t scaled = -1;  // beta C alone: alpha is 0
  static constexpr std::int32_t none = -2;    // no rung takes the operands: C becomes NaN

  std::int32_t rung = 0;
  RangeSummary a;
  RangeSummary b;
};

// A step that leaves at once unless the choice is its rung. choice = nullptr: it always runs.
struct DeviceCondition {
  const DeviceChoice* choice = nullptr;
  std::int32_t rung = 0;
};

// What kintsugi_report() says of a call on a device, in device memory; added to by choose().
struct DeviceReport {
  static constexpr int most_rungs = 4;

  std::int64_t entries[most_rungs] = {};
  std::int64_t scaled = 0;
  std::int64_t unreachable = 0;  // entries that no rung takes
  std::int64_t special = 0;      // entries with NaN or infinities in A or B
  std::int32_t largest_span_a = 0;
  std::int32_t largest_span_b = 0;
};

// One operand of one entry of the batch; `ranges` has one for each of its vectors.
struct DeviceSide {
  DeviceMatrix matrix;
  std::int64_t entry = 0;
  VectorRange* ranges = nullptr;
};

// Splits vectors first ... first + slices.vectors - 1, padding included. Ranges that are not known are found in the
// same pass, and written; the scale is written either way.
struct DeviceSplit {
  DeviceSide side;
  std::int64_t first = 0;
  const SplitRule* rule = nullptr;
  Slices slices;
  bool ranges_known = false;
};

// choose(): an entry takes the first rung that both sides are within.
struct DeviceRungs {
  std::int32_t spans[DeviceReport::most_rungs] = {};      // of the widest vector
  std::int32_t exponents[DeviceReport::most_rungs] = {};  // of the largest magnitude
  int count = 0;
};

// One tile of C: the sums of vectors first_row..., first_column... (of real vectors, where C is complex).
struct DeviceTile {
  DeviceSide a;
  DeviceSide b;
  DeviceMatrix c;
  std::int64_t entry = 0;
  std::int64_t first_row = 0;
  std::int64_t first_column = 0;  // of C
  std::int64_t rows = 0;
  std::int64_t columns = 0;  // of C
  DeviceScalars scalars;
  DeviceCondition condition;
};

// A product of the vendor's, in BLAS's terms: column-major.
struct DeviceBlasProduct {
  EntryType type = EntryType::f32;
  int op_a = 0, op_b = 0;  // 0: as it is, 1: transposed, 2: conjugated and transposed
  std::int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  bool pointers = false;  // a, b and c are arrays of pointers, in device memory
  std::int64_t batch_stride_a = 0, batch_stride_b = 0, batch_stride_c = 0;
  std::int64_t batch_count = 1;
  DeviceScalars scalars;
};

class DeviceEngine {
 public:
  virtual ~DeviceEngine() = default;

  // Rows and columns of C that multiply() takes at most at once. Blocks are multiples of it, so that how the products
  // are added does not depend on the memory there is.
  virtual std::int64_t tile() const = 0;
  // Indices of k after which sums had better leave, where a scheme lets the caller choose.
  virtual std::int64_t preferred_block() const = 0;
  // Bytes of scratch for multiply() and native().
  virtual std::size_t scratch_bytes(const Schedule& schedule, FormatId format, std::int64_t rows,
                                    std::int64_t columns) const = 0;
  virtual std::size_t native_scratch_bytes() const = 0;

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

  // Exponents and flags of all vectors; their scales are set by split().
  virtual void find_ranges(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                           const DeviceScalars& scalars) const = 0;
  virtual void choose(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                      const DeviceScalars& scalars, const DeviceRungs& rungs, DeviceChoice* choice,
                      DeviceReport* report) const = 0;
  // One or two of them, in one launch where they are small.
  virtual void split(const Queue& queue, std::span<const DeviceSplit> splits,
                     const DeviceCondition& condition) const = 0;
  // sums.rows is a multiple of 16, `rows` of them count.
  virtual void multiply(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                        const Accumulators& sums, std::byte* scratch) const = 0;
  // alpha * sum + beta * C with one rounding as the host's recombinations have it, special values included.
  virtual void recombine_weighted(const Queue& queue, const Accumulators& sums,
                                  std::span<const int> exponents, const DeviceTile& tile) const = 0;
  virtual void recombine_residues(const Queue& queue, const Accumulators& sums, const ResidueSystem& system,
                                  const DeviceTile& tile) const = 0;
  // The whole product in the entries' own arithmetic, each sum in ascending order with fused multiply-add; C becomes NaN
  // where the choice is `none`.
  virtual void multiply_plainly(const Queue& queue, const DeviceTile& tile) const = 0;
  // beta C.
  virtual void scale(const Queue& queue, const DeviceMatrix& c, std::int64_t entry,
                     const DeviceScalars& scalars, const DeviceCondition& condition) const = 0;
  virtual void native(const Queue& queue, const DeviceBlasProduct& product, std::byte* scratch) const = 0;
};

}  // namespace kintsugi::core
