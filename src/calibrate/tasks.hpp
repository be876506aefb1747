// Parts of a calibration: the workbench, on which steps are timed; tasks, which measure a device's kernels
// and calls; and the fit of costs to the measurements.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/cuda/owned.hpp"
#include "base/queue.hpp"
#include "base/text/format_text.hpp"
#include "engines/cpu/profile.hpp"
#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/step_data.hpp"
#include "engines/cuda/steps.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::calibrate {

// Device memory with random numbers, and timing of steps that read them.
class Workbench {
 public:
  // `quick`: times are medians of fewer repetitions.
  explicit Workbench(bool quick);

  // Fills the memory of matrices with random numbers in [-1, 1]: FP32 for f32 and c32, else FP64. Clears the
  // results.
  void fill(ElementType type);
  // Returns matrix `index`, where the memory is divided into matrices of `bytes` bytes. An index beyond the
  // last matrix wraps around.
  std::byte* matrix(std::size_t bytes, int index = 0) const;
  // Returns the memory for results, which has result_bytes bytes.
  std::byte* results() const { return results_.data(); }
  std::byte* scratch() const { return scratch_.data(); }

  // Returns the median time of a step in microseconds. step(queue, 0), step(queue, 1), ... are captured in a
  // graph. `expected`: a guess of the time in microseconds, which decides the number of repetitions.
  double microseconds(double expected, const std::function<void(const Queue&, int)>& step) const;

  // Returns the median time in microseconds of a copy of `bytes` bytes from the matrices to the results. The
  // copy is not captured in a graph, since the driver copies in another way there.
  double copy_microseconds(std::size_t bytes) const;

  static constexpr std::size_t matrix_bytes = std::size_t{1} << 30;  // memory of all matrices
  static constexpr std::size_t result_bytes = std::size_t{1} << 29;
  static constexpr std::size_t scratch_bytes = std::size_t{256} << 20;

 private:
  int rounds_;
  cuda::OwnedMemory matrices_, results_, scratch_;
  std::size_t filled_width_ = 0;  // bytes of a number in the memory of matrices; 0: it is not filled yet
};

// Returns the number of matrices of `bytes` bytes that together exceed every cache, at most 8.
int matrices_beyond_caches(std::size_t bytes);

// ---------------------------------------------------------------- tasks

// Measurements of a device's kernels and calls, each with the model to which costs are fitted.

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

template <class Costs>
struct MeasurementBy {
  std::string kind;  // measurements of one kind determine the same costs (fit.cpp)
  std::string what;  // what was measured, for messages
  double microseconds = 0;
  std::function<double(const Costs&)> expected;  // microseconds by the model with these costs
};
using Measurement = MeasurementBy<cuda::Costs>;
using CpuMeasurement = MeasurementBy<CpuCosts>;

// One task of a calibration. It takes at most a few seconds.
template <class Costs>
struct TaskBy {
  std::string what;  // what the task measures, for progress messages
  std::function<void(std::vector<MeasurementBy<Costs>>&)> run;  // appends the task's measurements
};
using Task = TaskBy<cuda::Costs>;
using CpuTask = TaskBy<CpuCosts>;

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

// Native products and fused products of bytes of the engine cpu, by one thread and by all. `quick`: times are
// the shortest of fewer repetitions.
std::vector<CpuTask> cpu_tasks(bool quick);
// All threads that a call may have.
int threads_of_calibration();

// ---------------------------------------------------------------- fit

// Changes the costs so that expected times come close to measured times. Begins with the given costs. Costs
// on which no measurement depends stay unchanged. Returns, for each kind of measurement, the remaining
// deviation of expected times.
std::vector<ProfileFit> fit_costs(cuda::Costs& costs, std::span<const Measurement> measurements);
std::vector<ProfileFit> fit_costs(CpuCosts& costs, std::span<const CpuMeasurement> measurements);

}  // namespace kintsugi::core::calibrate
