#include "planner/workspace/ozaki1_device.hpp"

#include <algorithm>

#include "engines/device_engine.hpp"
#include "planner/workspace/block_edge.hpp"
#include "planner/workspace/device.hpp"

namespace kintsugi::core {

namespace {

using Mode = Ozaki1Parameters::Mode;

// Slices keep every bit of rows and columns up to this dynamic range (mode=cr).
constexpr int range_of_exact_slices = 40;
// Largest number of binades between the largest magnitude of a row and its weighted sum (mode=dp, sp).
constexpr int range_of_weights = 16;

const Program& program_of(const Plan& plan) { return plan.candidates.front().program; }
// True if the device counts the slices that the data need.
bool counts_slices(const Plan& plan) { return !is_exact_ozaki1(plan) && program_of(plan).ozaki1.slices == 0; }

Slices take_slices(const Plan& plan, std::int64_t vectors, Workspace& workspace) {
  Slices slices = make_slices(program_of(plan).format(), SliceStorage::packed, ozaki1_device_slices(plan),
                              vectors, plan.problem.products());
  slices.data = workspace.take(slices.bytes());
  return slices;
}

DeviceSliceExponents take_exponents(const Slices& slices, Workspace& workspace) {
  DeviceSliceExponents taken;
  taken.values = workspace.take_array<std::int32_t>(slices.count, slices.allocated_vectors);
  taken.stride = slices.allocated_vectors;
  taken.lengths = workspace.take_array<std::int32_t>(slices.allocated_vectors);
  return taken;
}

}  // namespace

bool is_exact_ozaki1(const Plan& plan) { return program_of(plan).ozaki1.mode == Mode::cr; }

int ozaki1_device_slices(const Plan& plan) {
  const Program& program = program_of(plan);
  if (program.ozaki1.slices != 0) return program.ozaki1.slices;
  // A slice has residual_exponent bits. It is rounded to nearest, so that the residual loses one more bit.
  const int bits_per_slice = program.split_a.residual_exponent + 1;
  const auto slices_for = [&](int bits) { return static_cast<int>(divide_up(bits, bits_per_slice)); };
  int slices = 0;
  if (is_exact_ozaki1(plan)) {
    // The slices reach from the first bit of the largest element to the last bit of the smallest one. These
    // bits are the dynamic range, the significand and two more.
    const int element_bits = plan.problem.type == OperandType::f32 ? 26 : 55;
    slices = slices_for(range_of_exact_slices + element_bits);
  } else {
    const int result_bits = program.ozaki1.mode == Mode::sp ? 24 : 53;
    slices = slices_for(range_of_weights + result_bits) + 1;
  }
  return std::clamp(slices, 2, Ozaki1Parameters::max_slices);
}

DeviceBlockSliceCounts ozaki1_slice_counts(const Plan& plan) {
  const Problem& problem = plan.problem;
  const Ozaki1Parameters& parameters = program_of(plan).ozaki1;
  const std::int64_t rows = block_edge(problem.m, parameters.block);
  const std::int64_t columns = block_edge(problem.n, parameters.block);
  return {.counts = nullptr,
          .rows = rows,
          .vectors = problem.parts() * columns,
          .blocks_m = divide_up(problem.m, rows),
          .blocks_n = divide_up(problem.n, columns)};
}

Accumulators ozaki1_products(const Plan& plan, std::int64_t rows, std::int64_t columns) {
  return make_accumulators(SumType::i64, round_up(rows, sums_multiple),
                           round_up(plan.problem.parts() * columns, sums_multiple), ozaki1_products_at_once);
}

DeviceOzaki1Memory lay_out_device_ozaki1(const Plan& plan, const Blocking& blocking, Workspace& workspace) {
  const Program& program = program_of(plan);
  const DeviceBlockSliceCounts counts = ozaki1_slice_counts(plan);
  const Accumulators products =
      ozaki1_products(plan, std::min(blocking.m, ozaki1_tile_edge), std::min(blocking.n, ozaki1_tile_edge));
  DeviceOzaki1Memory memory;
  memory.a = take_slices(plan, blocking.m, workspace);
  memory.b = take_slices(plan, plan.problem.parts() * blocking.n, workspace);
  memory.exponents_a = take_exponents(memory.a, workspace);
  memory.exponents_b = take_exponents(memory.b, workspace);
  memory.unreachable = workspace.take_array<std::int32_t>(1);
  if (counts_slices(plan)) {
    memory.weights = workspace.take_array<double>(counts.blocks_n, plan.problem.products());
    memory.slice_counts = workspace.take_array<SliceCounts>(counts.blocks_m, counts.blocks_n);
  }
  memory.products = workspace.take(products.bytes());
  memory.sums = workspace.take(
      array_bytes(products.rows, products.columns, DeviceProductSums::bytes_of_sum(is_exact_ozaki1(plan))));
  memory.scratch = workspace.take(plan.engine->device()->scratch_bytes(program.schedule, program.format().id,
                                                                       products.rows, products.columns));
  return memory;
}

}  // namespace kintsugi::core
