// Tasks of a calibration: measurements of a device's kernels and calls, each with the model to which costs
// are fitted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/text/format_text.hpp"
#include "calibrate/workbench.hpp"
#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/step_data.hpp"
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

// Copies in device memory, and splits of FP32 operands.
std::vector<Task> split_tasks(Workbench& bench);
// Multi-term GEMM kernels in every tile, from slices to C.
std::vector<Task> multi_term_tasks(Workbench& bench);
// The vendor library's FP32 products, which FP32 emulations have to beat.
std::vector<Task> vendor_tasks(Workbench& bench);
// Native products of every type: by Kintsugi's kernels, and by cuBLAS.
std::vector<Task> native_tasks(Workbench& bench);
// int8 GEMM kernels in every tile, from residues of A and B to residues of C, without split and
// recombination.
std::vector<Task> int8_tasks(Workbench& bench);
// Packing of FP32 operands into int8 slices with exponents per tile, and the GEMM kernels for such slices.
std::vector<Task> weighted_tile_tasks(Workbench& bench);
// Whole emulated calls: FP32 calls, and those of other types by residues.
std::vector<Task> call_tasks(Workbench& bench);
// Whole emulated FP32 calls with a prepared B.
std::vector<Task> prepared_call_tasks(Workbench& bench);

// All tasks of a calibration, in the order in which they are measured.
std::vector<Task> all_tasks(Workbench& bench);

}  // namespace kintsugi::core::calibrate
