// Parameters of the kernels that select the checked candidate that computes a block of C first or next.
#pragma once

#include <cstdint>

#include "engines/device_checks.hpp"

namespace kintsugi::core::cuda {

// Parameters of sample_open_elements. Each thread block computes one sampled element of one batch item.
struct SampleTask {
  DeviceSide sides[2];
  std::int64_t vectors[2] = {};  // number of sampled vectors of each side
  std::int64_t length = 0;       // number of sampled elements of each vector
  std::int64_t step = 1;         // every step-th run of `sample_run` elements is sampled
  int digits = 0;                // significant bits of a result
  double parts = 1;              // number of real parts of an element of C: 1, or 2 if it is complex
  DeviceCheckedChain chain;
  DeviceSelection* selection = nullptr;
  DeviceCheckState* state = nullptr;
  DeviceReport* report = nullptr;
};

inline constexpr std::int64_t sample_threads = 256;
inline constexpr std::int64_t sample_vectors = 16;   // largest number of sampled vectors of a side
inline constexpr std::int64_t sample_length = 2048;  // largest number of sampled elements of a vector
inline constexpr std::int64_t sample_run = 64;       // number of adjacent sampled elements

inline constexpr std::int64_t list_threads = 256;
inline constexpr std::int64_t max_list_blocks = 1056;

}  // namespace kintsugi::core::cuda
