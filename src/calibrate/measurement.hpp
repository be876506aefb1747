// Measurements of a device's kernels and calls, each with the model that its costs are fitted to.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/text/format_text.hpp"
#include "engines/cuda/arch/costs.hpp"

namespace kintsugi::core::calibrate {

struct Shape {
  std::int64_t m, n, k;

  std::string text() const { return fmt::format("{} x {} x {}", m, n, k); }
};

struct Measurement {
  std::string kind;  // the costs of one kind are fitted together
  std::string what;
  double microseconds = 0;
  std::function<double(const cuda::Costs&)> expected;  // microseconds
};

// Part of a calibration that takes at most some seconds.
struct Task {
  std::string what;
  std::function<void(std::vector<Measurement>&)> run;
};

}  // namespace kintsugi::core::calibrate
