#include "planner/workspace/ozaki1_host.hpp"

#include <algorithm>

#include "planner/workspace/block_edge.hpp"

namespace kintsugi::core {

namespace {

SuccessiveSplit take_split(const Plan& plan, const SplitRule& rule, std::int64_t vectors,
                           Workspace& workspace) {
  SuccessiveSplit split;
  split.bits = rule.residual_exponent;
  split.by_sigma = rule.sigma_grid;
  split.slices = make_slices(*rule.format, plan.engine->slice_storage(rule.format->id), rule.slices, vectors,
                             plan.problem.products());
  split.slices.data = workspace.take(split.slices.bytes());
  split.exponents = {.data = workspace.take_array<std::int32_t>(rule.slices, vectors),
                     .rows = rule.slices,
                     .columns = vectors,
                     .row_stride = vectors,
                     .column_stride = 1};
  split.tops = workspace.take_array<std::int32_t>(vectors);
  return split;
}

// Returns the bytes of the sums of one step. Exact sums (mode=cr) have digits for all exponents of the type.
std::size_t sum_bytes(const Plan& plan, const Program& program, std::int64_t rows) {
  constexpr std::int64_t columns = ozaki1_vectors_at_once;
  if (program.ozaki1.mode != Ozaki1Parameters::Mode::cr) return RunningSums::bytes(rows, columns);
  return plan.problem.type == OperandType::f32 ? DigitSums::bytes(rows, columns, -149, 128)
                                               : DigitSums::bytes(rows, columns, -1074, 1024);
}

}  // namespace

Ozaki1Memory lay_out_ozaki1(const Plan& plan, const Program& program, const Blocking& blocking,
                            Workspace& workspace) {
  const Ozaki1Parameters& parameters = program.ozaki1;
  const std::int64_t k = plan.problem.products();
  const std::int64_t rows = std::min(blocking.m, block_edge(plan.problem.m, parameters.block));
  const std::int64_t columns =
      plan.problem.parts() * std::min(blocking.n, block_edge(plan.problem.n, parameters.block));
  Ozaki1Memory memory;
  memory.a = take_split(plan, program.split_a, rows, workspace);
  memory.b = take_split(plan, program.split_b, columns, workspace);
  memory.a.residuals = memory.b.residuals = workspace.take_array<Residual>(std::max(rows, columns), k);
  memory.weights = workspace.take_array<double>(k);
  memory.row_sums = workspace.take_array<Scaled>(rows);
  memory.slice_row_sums = workspace.take_array<Scaled>(rows);
  memory.slice_counts = workspace.take_array<std::int32_t>(rows);
  memory.products = workspace.take(
      make_accumulators(SumType::i64, rows, ozaki1_vectors_at_once, program.split_a.slices).bytes());
  memory.sums = workspace.take(sum_bytes(plan, program, rows));
  memory.scratch =
      workspace.take(plan.engine->scratch_bytes(program.schedule, program.format().id, k, plan.threads));
  return memory;
}

}  // namespace kintsugi::core
