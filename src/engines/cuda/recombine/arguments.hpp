// What the kernels of this folder are handed, beside a tile.
#pragma once

#include <cstdint>

#include "engines/device.hpp"
#include "schedule/schedule.hpp"

namespace kintsugi::core::cuda {

struct WeightedSums {
  const void* data;
  std::int64_t rows;
  std::int64_t group_stride;
  std::int32_t groups;
  std::int32_t smallest_exponent;
  std::int16_t exponents[max_groups];
};

struct ResidueSums {
  const std::uint8_t* data;
  std::int64_t rows;
  std::int64_t group_stride;
};

// Columns of C lie along memory, or C is handed over transposed.
struct ScaledMatrix {
  DeviceMatrix c;
  std::int64_t entry;
  DeviceScalars scalars;
  DeviceCondition condition;
};

// Rows that a block of threads scales.
inline constexpr std::int64_t scaled_at_once = 1024;

// Threads of a block that recombines a square of entries of C.
inline constexpr int square = 32;
inline constexpr int lines = 8;
inline constexpr int tile_threads = square * lines;

}  // namespace kintsugi::core::cuda
