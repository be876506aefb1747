// Parameters of the kernel that finds rounding-error bounds.
#pragma once

#include <cstdint>

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Parameters for one operand of one batch item.
struct RoundingBoundsTask {
  DeviceMatrix matrix;
  std::int64_t item = 0;
  const VectorRange* ranges = nullptr;  // ranges of all vectors of the operand
  int top_exponent = 0;                 // exponent of the largest integer to which elements are scaled
  RoundingBound* bounds = nullptr;      // bounds of all vectors of the operand
  std::int64_t first = 0;               // first vector whose bounds are found
  std::int64_t blocks = 0;              // thread blocks; each of them has ranges_vectors vectors
};

// The grid has the thread blocks of the first operand, then those of the second.
struct RoundingBoundsTasks {
  RoundingBoundsTask task[2];
  DeviceCondition condition;
};

}  // namespace kintsugi::core::cuda
