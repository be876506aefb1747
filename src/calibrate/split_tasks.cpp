#include <array>

#include "base/text/format_text.hpp"
#include "calibrate/tasks.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/gemm/multi_term_gemm.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::calibrate {

namespace {

void measure_copy(Workbench& bench, std::vector<Measurement>& measurements) {
  constexpr std::size_t bytes = Workbench::result_bytes;
  bench.fill(ElementType::f32);
  const double measured = bench.copy_microseconds(bytes);
  measurements.push_back({"copy", fmt::format("{} MiB", bytes >> 20), measured,
                          [](const cuda::Costs& costs) { return 2.0 * bytes / costs.call.copy_rate; }});
}

struct SplitShape : Shape {
  bool splits_only_a = false;  // true: B is prepared
};

enum class Contiguous { along_k, across_vectors };  // order of the elements of an operand in memory

// Returns the split of matrix `index`. Its ranges and slices are placed at `next`, and `next` is advanced
// behind them.
DeviceSplit split_of(Workbench& bench, const SplitRule& rule, std::int64_t vectors, std::int64_t k,
                     Contiguous contiguous, int index, std::byte*& next) {
  const std::size_t bytes = static_cast<std::size_t>(vectors * k) * sizeof(float);
  const bool along_k = contiguous == Contiguous::along_k;
  DeviceSplit split;
  split.side.matrix = {.data = bench.matrix(bytes, index),
                       .rows = vectors,
                       .columns = k,
                       .row_stride = along_k ? k : 1,
                       .column_stride = along_k ? 1 : vectors};
  split.side.ranges = reinterpret_cast<VectorRange*>(next);
  next += aligned_size(static_cast<std::size_t>(vectors) * sizeof(VectorRange));
  split.rule = &rule;
  split.slices = make_slices(*rule.format, SliceStorage::packed, rule.slices, vectors, k);
  split.slices.data = next;
  next += aligned_size(split.slices.bytes());
  return split;
}

// Measures the splits of a column-major A, whose vectors are not contiguous, and of a column-major B, whose
// vectors are contiguous.
void measure_splits(Workbench& bench, const Program& program, const SplitShape& shape,
                    std::vector<Measurement>& measurements) {
  const DeviceShape modelled = device_shape(program, shape, shape.splits_only_a);
  bench.fill(ElementType::f32);
  const double expected = cuda::expected_split_time(modelled, cuda::current_costs().call);
  const double measured = bench.microseconds(expected, [&](const Queue& queue, int step) {
    std::byte* next = bench.results();
    std::vector<DeviceSplit> splits{
        split_of(bench, program.split_a, shape.m, shape.k, Contiguous::across_vectors, 2 * step, next)};
    if (!shape.splits_only_a)
      splits.push_back(
          split_of(bench, program.split_b, shape.n, shape.k, Contiguous::along_k, 2 * step + 1, next));
    cuda::split(queue, splits, {});
  });
  measurements.push_back(
      {"splits", shape.text() + (shape.splits_only_a ? ", A" : ""), measured,
       [modelled](const cuda::Costs& costs) { return cuda::expected_split_time(modelled, costs.call); }});
}

}  // namespace

std::vector<Task> split_tasks(Workbench& bench) {
  std::vector<Task> tasks{
      {"copies", [&bench](std::vector<Measurement>& measurements) { measure_copy(bench, measurements); }}};
  static const Program program = find_scheme("fp16x3")->program;
  constexpr std::array shapes{
      SplitShape{{256, 256, 256}},        SplitShape{{512, 512, 512}},     SplitShape{{1024, 1024, 1024}},
      SplitShape{{2048, 2048, 2048}},     SplitShape{{4096, 4096, 4096}},  SplitShape{{8192, 8192, 2048}},
      SplitShape{{64, 64, 8192}},         SplitShape{{64, 8192, 4096}},    SplitShape{{1024, 1024, 32768}},
      SplitShape{{256, 256, 65536}},      SplitShape{{64, 64, 262144}},    SplitShape{{1024, 64, 1024}, true},
      SplitShape{{4096, 64, 4096}, true}, SplitShape{{64, 64, 4096}, true}};
  for (const SplitShape& shape : shapes) {
    tasks.push_back({"splits of " + shape.text(), [&bench, shape](std::vector<Measurement>& measurements) {
                       measure_splits(bench, program, shape, measurements);
                     }});
  }
  return tasks;
}

}  // namespace kintsugi::core::calibrate
