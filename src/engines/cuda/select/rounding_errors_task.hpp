// Parameters of the kernel that finds rounding errors.
#pragma once

#include <cstdint>

#include "arith/residue/rounding_errors.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

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
