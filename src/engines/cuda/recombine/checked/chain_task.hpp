// Parameters of the kernels that select which checked candidate computes a block of C first and next.
#pragma once

#include <cstdint>

#include "engines/device_checks.hpp"

namespace kintsugi::core::cuda {

// Parameters of sample_open_elements: each warp computes one sampled element of one batch item.
struct SampleTask {
  DeviceSide sides[2];
  std::int64_t vectors[2] = {};  // number of sampled vectors of each side
  std::int64_t length = 0;       // sampled elements of each vector
  std::int64_t step = 1;         // the sampled elements are every step-th run of `sample_run` elements
  int digits = 0;                // significant bits of a result
  double parts = 1;              // real parts of an element of C: 1, or 2 if it is complex
  DeviceCheckedChain chain;
  DeviceSelection* selection = nullptr;
  DeviceCheckState* state = nullptr;
  DeviceReport* report = nullptr;
};

inline constexpr std::int64_t sample_threads = 256;
inline constexpr std::int64_t sample_vectors = 32;   // sampled vectors of a side, at most
inline constexpr std::int64_t sample_length = 8192;  // sampled elements of a vector, at most
inline constexpr std::int64_t sample_run = 64;       // adjacent sampled elements

inline constexpr std::int64_t list_threads = 256;
inline constexpr std::int64_t max_list_blocks = 1056;

}  // namespace kintsugi::core::cuda
