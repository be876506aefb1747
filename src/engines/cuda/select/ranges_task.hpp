// What the kernels of ranges, norms and selection are told.
#pragma once

#include <cstdint>

#include "engines/cuda/select/alpha.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// The grid's second extent is items; what has one is that of the launch's first.
struct RangesTask {
  DeviceMatrix matrix;
  std::int64_t item = 0;
  VectorRange* ranges = nullptr;
  VectorNorm* norms = nullptr;  // of ranges: nullptr where nobody asks for typical exponents
  std::int64_t blocks = 0;      // of threads
};

struct RangesTasks {
  RangesTask task[2];
  Alpha alpha;
};

// A thread block for each batch item.
struct SummaryTask {
  const VectorRange* ranges = nullptr;
  std::int64_t vectors = 0;
  RangeSummary* summaries = nullptr;
};

// A thread block for each batch item.
struct SelectionTask {
  const VectorRange* ranges[2] = {};
  const VectorNorm* norms[2] = {};
  const RangeSummary* summaries[2] = {};  // nullptr: they are not known
  std::int64_t vectors[2] = {};
  std::int64_t length = 0;  // of each vector
  bool is_shared[2] = {};   // all items have the same ranges
  Alpha alpha;
  DeviceCandidates candidates;
  DeviceSelection* selection = nullptr;
  DeviceReporting reporting;
};

inline constexpr std::int64_t ranges_vectors = 16;  // of a block
inline constexpr std::int64_t ranges_threads = 256;
inline constexpr std::int64_t selection_threads = 512;

}  // namespace kintsugi::core::cuda
