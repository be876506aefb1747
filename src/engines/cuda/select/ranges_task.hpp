// Parameters of the kernels of ranges, norms and selection.
#pragma once

#include <cstdint>

#include "engines/cuda/select/alpha.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Parameters for one operand. The grid's second extent counts batch items; pointers are those of the launch's
// first item.
struct RangesTask {
  DeviceMatrix matrix;
  std::int64_t item = 0;
  VectorRange* ranges = nullptr;
  VectorNorm* norms = nullptr;  // nullptr: the kernel of ranges finds no typical exponents
  std::int64_t blocks = 0;      // thread blocks
};

// The grid's first extent has the thread blocks of the first operand, then those of the second.
struct RangesTasks {
  RangesTask task[2];
  Alpha alpha;
};

// Parameters of summarize_ranges. Thread blocks (x, y) have parts of the vectors of batch item y.
struct SummaryTask {
  const VectorRange* ranges = nullptr;
  std::int64_t vectors = 0;
  std::int64_t vectors_per_block = 0;  // vectors per thread block
  MergedSummary* summaries = nullptr;
};

// Parameters of the selector kernels, which have one thread block per batch item.
struct SelectionTask {
  const VectorRange* ranges[2] = {};
  const VectorNorm* norms[2] = {};
  const MergedSummary* summaries[2] = {};  // nullptr: found from the ranges
  std::int64_t vectors[2] = {};
  std::int64_t length = 0;  // elements of each vector
  bool is_shared[2] = {};   // true if all items have the same ranges
  Alpha alpha;
  DeviceCandidates candidates;
  DeviceSelection* selection = nullptr;
  DeviceReporting reporting;
};

inline constexpr std::int64_t ranges_vectors = 16;  // vectors per thread block
inline constexpr std::int64_t ranges_threads = 256;
inline constexpr std::int64_t selection_threads = 512;

}  // namespace kintsugi::core::cuda
