#include <array>

#include "calibrate/tasks.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/gemm/clusters.hpp"
#include "engines/cuda/gemm/int8_gemm.hpp"
#include "formats/int8.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::calibrate {

namespace {

// Returns slices whose bytes are the bytes of FP32 matrix `index`, which are nearly random.
Slices random_slices(Workbench& bench, int count, std::int64_t vectors, std::int64_t k, int index) {
  Slices slices = make_slices(int8, SliceStorage::packed, count, vectors, k);
  slices.data = bench.matrix(slices.bytes(), index);
  return slices;
}

void measure(Workbench& bench, const Schedule& schedule, const Shape& shape,
             std::vector<Measurement>& measurements) {
  bench.fill(ElementType::f32);
  Accumulators sums = make_accumulators(SumType::residue, shape.m, shape.n, schedule.groups);
  sums.data = bench.results();
  const cuda::Int8Shape modelled{shape.m, shape.n, shape.k, schedule.groups,
                                 static_cast<int>(schedule.terms.size())};
  const auto expected = [modelled, clusters = cuda::clusters_of_device()](const cuda::Costs& costs) {
    return cuda::int8_microseconds(modelled, costs.int8_tile, clusters);
  };
  const double measured =
      bench.microseconds(expected(cuda::current_costs()), [&](const Queue& queue, int step) {
        cuda::int8_gemm(queue, schedule, random_slices(bench, schedule.slices_a, shape.m, shape.k, 2 * step),
                        random_slices(bench, schedule.slices_b, shape.n, shape.k, 2 * step + 1), sums, {});
      });
  measurements.push_back({"int8", shape.text(), measured, expected});
}

}  // namespace

std::vector<Task> int8_tasks(Workbench& bench) {
  static const Program program = find_scheme("ozaki2:moduli=15")->program;
  constexpr std::array shapes{Shape{256, 256, 256},    Shape{512, 512, 512},    Shape{1024, 1024, 1024},
                              Shape{1536, 1536, 1536}, Shape{2048, 2048, 2048}, Shape{4096, 4096, 1024},
                              Shape{4096, 4096, 4096}, Shape{4096, 4096, 256},  Shape{1024, 1024, 8192}};
  std::vector<Task> tasks;
  for (const Shape& shape : shapes) {
    tasks.push_back(
        {"int8 products, " + shape.text(), [&bench, shape](std::vector<Measurement>& measurements) {
           measure(bench, program.schedule, shape, measurements);
         }});
  }
  return tasks;
}

}  // namespace kintsugi::core::calibrate
