// Parameters of the kernels that find ranges and norms, summarize ranges and select a candidate.
#pragma once

#include <cstdint>

#include "arith/host_device.hpp"
#include "arith/residue/rounding_errors.hpp"
#include "engines/cuda/select/alpha.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// Parameters for one operand. Pointers to data of batch items point to the launch's first item. The grid's
// second extent counts the items.
struct RangesTask {
  DeviceMatrix matrix;
  std::int64_t item = 0;
  VectorRange* ranges = nullptr;
  VectorNorm* norms = nullptr;             // nullptr: find_ranges finds no depths
  VectorMagnitudes* magnitudes = nullptr;  // nullptr: they are not needed
  std::int64_t blocks = 0;                 // thread blocks per item
};

// The grid's first extent has the thread blocks of the first operand, then those of the second.
struct RangesTasks {
  RangesTask task[2];
  Alpha alpha;
};

// Parameters of summarize_ranges. Thread block (x, y) reads the x-th part of the ranges of batch item y.
struct SummaryTask {
  const VectorRange* ranges = nullptr;
  std::int64_t vectors = 0;
  std::int64_t vectors_per_block = 0;
  MergedSummary* summaries = nullptr;
};

// Parameters of the selector kernels, which have one thread block per batch item.
struct SelectionTask {
  const VectorRange* ranges[2] = {};
  const VectorNorm* norms[2] = {};
  const MergedSummary* summaries[2] = {};  // nullptr: the kernel summarizes the ranges itself
  std::int64_t vectors[2] = {};
  std::int64_t length = 0;  // elements of each vector
  bool is_shared[2] = {};   // true if all items have the same ranges
  Alpha alpha;
  DeviceCandidates candidates;
  DeviceSelection* selection = nullptr;
  DeviceReporting reporting;
  // Distance of vectors whose norms are read: 2 for complex columns, whose two real vectors have one norm.
  std::int64_t norm_step[2] = {1, 1};
};

// Vectors and threads per thread block of the kernels that find ranges and norms.
inline constexpr std::int64_t ranges_vectors = 16;
inline constexpr std::int64_t ranges_threads = 256;
inline constexpr std::int64_t selection_threads = 512;  // threads per block of the other kernels

// Threads per block of find_complex_norms, which stay on an SM each, and elements that they copy at once.
inline constexpr int complex_norms_threads = 512;
inline constexpr int complex_norms_chunk = 4096;
inline constexpr std::int64_t complex_norms_kept_bytes = 8 * complex_norms_chunk;  // of a chunk that is kept
inline constexpr int complex_norms_strip = 4;  // vectors of a work item if vectors are adjacent in memory

// log2 of the number of vectors of a work item of find_complex_norms: several rows if they are short.
constexpr int complex_norms_width_bits(const DeviceMatrix& matrix) {
  if (matrix.column_stride != 1) return 2;
  int bits = 0;
  while (bits < 3 && matrix.columns << (bits + 1) <= complex_norms_chunk) ++bits;
  return bits;
}
static_assert(complex_norms_strip == 1 << 2);

// Parameters of find_complex_norms.
struct ComplexNormsTasks {
  RangesTasks ranges;               // `blocks` counts the work items of a batch item
  std::int32_t width_bits[2] = {};  // log2 of the vectors of each task's work items
  std::uint32_t work_items = 0;     // of all batch items
  std::int32_t kept_chunks = 0;     // chunks of a work item for which there is shared memory
};

// Parameters for one operand of one batch item.
struct RoundingErrorsTask {
  DeviceMatrix matrix;
  std::int64_t item = 0;
  const VectorRange* ranges = nullptr;     // ranges of all vectors of the operand, with their scales
  VectorMagnitudes* magnitudes = nullptr;  // nullptr: neither norms nor splits have found sums
  RoundingErrors* errors = nullptr;        // of all vectors of the operand
  std::int64_t first = 0;                  // first vector whose errors are found
  std::int64_t blocks = 0;                 // thread blocks; each of them has ranges_vectors vectors
};

// The grid has the thread blocks of the first operand, then those of the second.
struct RoundingErrorsTasks {
  RoundingErrorsTask task[2];
  DeviceCondition condition;
};

}  // namespace kintsugi::core::cuda
