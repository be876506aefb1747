// What the kernel of margins is told.
#pragma once

#include <cstdint>

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

struct MarginsTask {
  DeviceMatrix matrix;
  std::int64_t entry = 0;
  const VectorRange* ranges = nullptr;
  int top_exponent = 0;
  RoundingMargin* margins = nullptr;
  std::int64_t blocks = 0;  // of threads
};

struct MarginsTasks {
  MarginsTask task[2];
  DeviceCondition condition;
};

}  // namespace kintsugi::core::cuda
