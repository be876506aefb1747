#include <array>
#include <memory>

#include "base/text/format_text.hpp"
#include "calibrate/fused_products.hpp"
#include "calibrate/tasks.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/gemm/weighted_tiles/weighted_tile_gemm.hpp"

namespace kintsugi::core::calibrate {

namespace {

// Returns the program of a level, as for sums of k products.
Program program_of(const std::string& scheme, std::int64_t k) {
  return fitted_program(*find_scheme(scheme), OperandType::f32, k);
}

// Measures the packing of one operand, whose vectors are contiguous.
void measure_packing(Workbench& bench, const std::string& scheme, const Shape& shape,
                     std::vector<Measurement>& measurements) {
  bench.fill(ElementType::f32);
  const auto program = std::make_shared<const Program>(program_of(scheme, shape.k));
  const auto expected = [program, shape](const cuda::Costs& costs) {
    return cuda::expected_packing_time(device_shape(*program, shape, true), costs);
  };
  const SplitOperand target(bench, program->split_a, shape.m, shape.k, 0);
  const double measured =
      bench.microseconds(expected(cuda::current_costs()), [&](const Queue& queue, int step) {
        DeviceSplit split{.side = target.side(), .rule = &program->split_a, .slices = target.slices()};
        split.side.matrix = row_major_matrix(bench, shape.m, shape.k, step);
        bench.engine().split(queue, {&split, 1}, {});
      });
  measurements.push_back({"packing", fmt::format("{} {}", scheme, shape.text()), measured, expected});
}

void measure_products(Workbench& bench, const std::string& scheme, const Shape& shape,
                      std::vector<Measurement>& measurements) {
  bench.fill(ElementType::f32);
  const auto program = std::make_shared<const Program>(program_of(scheme, shape.k));
  const FusedProducts products(bench, *program, shape);
  const auto expected = [program, shape](const cuda::Costs& costs) {
    return cuda::expected_weighted_tile_gemm_time(device_shape(*program, shape), costs.weighted_tiles);
  };
  const double measured =
      bench.microseconds(expected(cuda::current_costs()), [&](const Queue& queue, int step) {
        bench.engine().multiply_fused(queue, products.at(step), bench.scratch());
      });
  measurements.push_back({"weighted_tiles", fmt::format("{} {}", scheme, shape.text()), measured, expected});
}

using Measure = void (*)(Workbench&, const std::string&, const Shape&, std::vector<Measurement>&);

void add_tasks(Workbench& bench, Measure measure, std::span<const char* const> schemes,
               std::span<const Shape> shapes, std::vector<Task>& tasks) {
  for (const char* scheme : schemes) {
    for (const Shape& shape : shapes) {
      tasks.push_back(
          {fmt::format("{} {}", scheme, shape.text()),
           [&bench, measure, scheme = std::string(scheme), shape](std::vector<Measurement>& measurements) {
             measure(bench, scheme, shape, measurements);
           }});
    }
  }
}

}  // namespace

std::vector<Task> weighted_tile_tasks(Workbench& bench) {
  constexpr std::array packed{"mixpert-1", "mixpert-4", "mixpert-4:tile=128"};
  constexpr std::array packed_shapes{Shape{256, 1, 256}, Shape{1024, 1, 1024}, Shape{4096, 1, 4096},
                                     Shape{8192, 1, 8192}, Shape{64, 1, 65536}};
  constexpr std::array multiplied{"mixpert-1",          "mixpert-2",
                                  "mixpert-3",          "mixpert-4",
                                  "mixpert-full",       "mixpert-1:tile=128",
                                  "mixpert-2:tile=128", "mixpert-3:tile=128",
                                  "mixpert-4:tile=128", "mixpert-full:tile=128"};
  constexpr std::array shapes{Shape{256, 256, 256},    Shape{1024, 1024, 1024}, Shape{2048, 2048, 2048},
                              Shape{4096, 4096, 4096}, Shape{8192, 4096, 256},  Shape{256, 256, 16384}};
  std::vector<Task> tasks;
  add_tasks(bench, measure_packing, packed, packed_shapes, tasks);
  add_tasks(bench, measure_products, multiplied, shapes, tasks);
  return tasks;
}

}  // namespace kintsugi::core::calibrate
