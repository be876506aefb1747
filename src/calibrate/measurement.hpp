// Measurements of a device's kernels and calls, each with the model to which costs are fitted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/text/format_text.hpp"
#include "engines/cuda/arch/costs.hpp"
#include "engines/device.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::calibrate {

struct Shape {
  std::int64_t m, n, k;

  std::string text() const { return fmt::format("{} x {} x {}", m, n, k); }
};

// Returns the shape of one FP32 product by the program's slices, where A is not prepared. The program must
// outlive it.
inline DeviceShape device_shape(const Program& program, const Shape& shape, bool prepared_b = false) {
  return {.schedule = program.schedule,
          .format = program.format().id,
          .type = ElementType::f32,
          .m = shape.m,
          .n = shape.n,
          .k = shape.k,
          .items = 1,
          .prepared_a = false,
          .prepared_b = prepared_b};
}

struct Measurement {
  std::string kind;  // measurements of one kind determine the same costs (fit.cpp)
  std::string what;  // what was measured, for messages
  double microseconds = 0;
  std::function<double(const cuda::Costs&)> expected;  // microseconds by the model with these costs
};

// One task of a calibration. It takes at most a few seconds.
struct Task {
  std::string what;                                    // what the task measures, for progress messages
  std::function<void(std::vector<Measurement>&)> run;  // appends the task's measurements
};

}  // namespace kintsugi::core::calibrate
