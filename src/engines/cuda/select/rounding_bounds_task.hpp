// Parameters of the kernel of rounding-error bounds.
#pragma once

#include <cstdint>

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

struct RoundingBoundsTask {
  DeviceMatrix matrix;
  std::int64_t item = 0;
  const VectorRange* ranges = nullptr;
  int top_exponent = 0;
  RoundingBound* bounds = nullptr;
  std::int64_t first = 0;
  std::int64_t blocks = 0;  // thread blocks
};

struct RoundingBoundsTasks {
  RoundingBoundsTask task[2];
  DeviceCondition condition;
};

}  // namespace kintsugi::core::cuda
