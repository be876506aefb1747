// Parameters of the kernels that find ranges and norms, summarize ranges and select a candidate.
#pragma once

#include <cstdint>

#include "arith/host_device.hpp"
#include "arith/residue/rounding_errors.hpp"
#include "engines/cuda/split/split_task.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// Vectors of one operand whose ranges, norms or rounding errors are found. Pointers to data of batch items
// point to the launch's first item. The grid's second extent counts the items.
struct VectorsTask {
  DeviceMatrix matrix;
  std::int64_t item = 0;
  // These start with vector `first`.
  VectorRange* ranges = nullptr;
  VectorNorm* norms = nullptr;             // nullptr: no step needs norms
  VectorMagnitudes* magnitudes = nullptr;  // nullptr: they are not needed
  RoundingErrors* errors = nullptr;        // for find_rounding_errors
  std::int64_t item_vectors = 0;           // number of ranges, and of norms, per item
  std::int64_t first = 0;
  std::int64_t vectors = 0;
  // The vectors of a launch are divided if parts of the long ones are needed to fill the device. Each part
  // adds to sums in the memory of the vector's range or norm, which begin_parts has cleared and end_parts
  // completes; so do short vectors of one part.
  std::int64_t parts_per_vector = 1;
  std::int64_t part_length = 0;    // elements
  std::int64_t blocks = 0;         // thread blocks that read the operand, per item
  std::int64_t vector_blocks = 0;  // thread blocks of begin_parts and end_parts, per item
  bool is_divided = false;
  bool finds_depth = false;
  std::int32_t top_exponent = 0;  // top_exponent and sum_bits of the rule whose proof a vector's norm may
  std::int32_t sum_bits = 0;      // rule out
};

// The grid's first extent has the thread blocks of the first operand, then those of the second.
struct VectorsTasks {
  VectorsTask task[2];
  Alpha alpha;
  DeviceCondition condition;  // of find_rounding_errors
  NormFindings found_norms;   // of find_norms and end_parts
  bool of_norms = false;      // begin_parts and end_parts: of sums for norms, else for ranges
};

inline constexpr std::int64_t vectors_threads = 256;  // per thread block of all these kernels
// Along k a warp sums a vector, or a part of one. Across k a thread block sums a strip: as many adjacent
// vectors as 128 bytes hold elements, or a part of them.
inline constexpr std::int64_t part_along_k = 4096;  // elements; a multiple of 512
inline constexpr std::int64_t part_across = 1024;
inline constexpr std::int64_t vectors_strip_bytes = 128;

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

inline constexpr std::int64_t selection_threads = 512;  // threads per block of the kernels that select

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
  VectorsTasks vectors;             // `blocks` counts the work items of a batch item
  std::int32_t width_bits[2] = {};  // log2 of the vectors of each task's work items
  std::uint32_t work_items = 0;     // of all batch items
  std::int32_t kept_chunks = 0;     // chunks of a work item for which there is shared memory
};

}  // namespace kintsugi::core::cuda
