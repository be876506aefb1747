// Memory of one batch item on the host.
#include <algorithm>

#include "planner/memory.hpp"
#include "planner/plan.hpp"
#include "recombine/recombine.hpp"
#include "schemes/magnitudes.hpp"
#include "split/maxima.hpp"

namespace kintsugi::core {

namespace {

template <class T>
std::span<T> take_span(std::int64_t count, Workspace& workspace) {
  return {workspace.take_array<T>(count), static_cast<std::size_t>(count)};
}

Slices take_slices(const Plan& plan, const SplitRule& rule, std::int64_t vectors, std::int64_t k,
                   Workspace& workspace) {
  Slices slices = make_slices(rule, plan.engine->slice_storage(rule.format->id), vectors, k);
  slices.place(workspace.take(slices.bytes()));
  return slices;
}

}  // namespace

RangeMemory lay_out_ranges(const Plan& plan, Workspace& workspace) {
  RangeMemory memory;
  memory.rows = take_span<VectorRange>(plan.problem.m, workspace);
  memory.columns = take_span<VectorRange>(plan.problem.vectors_b(), workspace);
  return memory;
}

NormMemory lay_out_norms(const Plan& plan, Workspace& workspace) {
  const auto by_norms = [](const Candidate& candidate) { return candidate.acceptance.by_norms(); };
  if (std::ranges::none_of(plan.candidates, by_norms)) return {};
  NormMemory memory;
  memory.rows = take_span<VectorNorm>(plan.problem.m, workspace);
  memory.columns = take_span<VectorNorm>(plan.problem.vectors_b(), workspace);
  return memory;
}

BlockMemory lay_out_block(const Plan& plan, const Program& program, const Blocking& blocking,
                          Workspace& workspace) {
  const bool by_elements = program.multiplies_elements();
  const std::int64_t k = by_elements ? plan.problem.k : plan.problem.products();
  const std::int64_t columns = (by_elements ? 1 : plan.problem.parts()) * blocking.n;
  BlockMemory memory;
  memory.a = take_slices(plan, program.split_a, blocking.m, k, workspace);
  memory.b = take_slices(plan, program.split_b, columns, k, workspace);
  memory.sums = make_accumulators(program.sum_type(plan.engine->reduces_sums_modulo()), blocking.m, columns,
                                  program.schedule.sums());
  memory.sums.data = workspace.take(memory.sums.bytes());
  memory.scratch = workspace.take(
      plan.engine->host()->scratch_bytes(program.schedule, program.format().id, k, plan.threads));
  if (scales_by_maxima(program.split_a)) {
    memory.weights_a = take_span<float>(blocking.m * program.split_a.slices, workspace);
    memory.weights_b = take_span<float>(columns * program.split_b.slices, workspace);
  }
  return memory;
}

ProductBitMemory lay_out_product_bits(const Plan& plan, Workspace& workspace) {
  ProductBitMemory memory;
  memory.rows = take_span<std::int32_t>(plan.problem.m, workspace);
  memory.columns = take_span<std::int32_t>(plan.problem.vectors_b(), workspace);
  return memory;
}

CheckMemory lay_out_check(const Plan& plan, const Blocking& blocking, Workspace& workspace) {
  const Problem& problem = plan.problem;
  CheckMemory memory;
  memory.rounding_bounds_a = take_span<RoundingBound>(problem.m, workspace);
  memory.rounding_bounds_b = take_span<RoundingBound>(problem.vectors_b(), workspace);
  memory.inner_a = take_span<InnerRange>(problem.products(), workspace);
  memory.inner_b = take_span<InnerRange>(problem.products(), workspace);
  memory.factors_a = take_span<double>(problem.products(), workspace);
  memory.factors_b = take_span<double>(problem.products(), workspace);
  memory.states = workspace.take_array<std::uint8_t>(blocking.m, blocking.n);
  memory.exact_scratch = lay_out_exact_sums(plan, workspace);
  return memory;
}

std::byte* lay_out_exact_sums(const Plan& plan, Workspace& workspace) {
  return workspace.take(with_element_type(plan.problem, [&]<class T>() {
    return exact_scratch_bytes<T>(plan.problem.m, plan.problem.vectors_b(), plan.problem.products(),
                                  plan.threads);
  }));
}

std::byte* lay_out_refused_elements(const Plan& plan, const Blocking& blocking, Workspace& workspace) {
  return with_element_type(plan.problem, [&]<class T>() {
    return reinterpret_cast<std::byte*>(workspace.take_array<T>(blocking.m, blocking.n));
  });
}

std::uint8_t* lay_out_element_states(const Plan& plan, Workspace& workspace) {
  return workspace.take_array<std::uint8_t>(plan.problem.m, plan.problem.n);
}

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
  memory.scratch = workspace.take(
      plan.engine->host()->scratch_bytes(program.schedule, program.format().id, k, plan.threads));
  return memory;
}

std::size_t native_scratch_bytes(const Plan& plan, const Candidate& candidate, const Blocking& blocking) {
  const Problem& problem = plan.problem;
  if (!candidate.fixed_order || problem.type == OperandType::dd) return 0;
  const std::size_t real_bytes = problem.type == OperandType::f32 ? sizeof(float) : sizeof(double);
  return plan.engine->host()->fixed_order_bytes(real_bytes, blocking.m, problem.parts() * blocking.n,
                                                problem.products(), plan.threads);
}

}  // namespace kintsugi::core
