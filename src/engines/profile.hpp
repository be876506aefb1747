// Parts of the profiles of all engines that have some: GPUs (engines/cuda/arch/profile.hpp) and CPUs
// (engines/cpu/profile.hpp).
#pragma once

#include <string>

namespace kintsugi::core {

// Agreement of the fitted costs with the measurements of one kind.
struct ProfileFit {
  std::string kind;
  int measurements = 0;
  double median_deviation = 0;  // |measured / expected - 1|
  double max_deviation = 0;
  std::string worst;  // measurement with the largest deviation
};

}  // namespace kintsugi::core
