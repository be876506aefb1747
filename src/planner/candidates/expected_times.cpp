#include "planner/candidates/expected_times.hpp"

#include "split/slices.hpp"

namespace kintsugi::core {

namespace {

double padded(std::int64_t length, std::int64_t multiple) {
  return static_cast<double>(round_up(length, multiple));
}

double product_time(const Engine& engine, const Program& program, const StepCosts& costs) {
  return costs.product > 0 ? costs.product : 1 / engine.relative_rate(program.format().id);
}

}  // namespace

ExpectedTimes expected_times(const Engine& engine, const Program& program, const Problem& problem) {
  const auto m = static_cast<double>(problem.m);
  const auto n = static_cast<double>(problem.n);
  const auto k = static_cast<double>(problem.k);
  const double parts = problem.complex ? 2 : 1;
  // If complex elements are not multiplied as such, a complex column counts as two vectors and two columns of
  // sums.
  const double columns = program.multiplies_elements() ? 1 : parts;
  const StepCosts costs = engine.step_costs(program.split_a);
  const double split_rows = problem.prepared_a ? 0 : m;
  const double split_columns = problem.prepared_b ? 0 : columns * n;
  const double elements = parts * (split_rows + split_columns) * k;
  const double product = product_time(engine, program, costs);
  // A basis of complex residues counts products of elements; other programs multiply the embedding.
  const double terms = static_cast<double>(program.schedule.terms.size()) *
                       (program.multiplies_elements() ? 1 : parts * parts);
  const bool tiled = costs.tile > 1;
  const double products = product * terms * padded(problem.m, costs.tile) * padded(problem.n, costs.tile) *
                          padded(problem.k, tiled ? Slices::k_multiple : 1);
  const NativeCosts native = engine.native_costs();
  const double emulated = native.call + elements * (costs.element + program.split_a.slices * costs.slice) +
                          products +
                          m * n * (parts * costs.result + columns * program.schedule.sums() * costs.sum);
  const double width = problem.type == OperandType::f64 ? 2 : 1;
  const double native_products = width * parts * parts * m * n * k;
  return {.emulated = emulated,
          .native = native.call + width * parts * (m * k + k * n + m * n) * native.element + native_products};
}

double expected_term(const Engine& engine, const Program& program, const Problem& problem) {
  const auto k = static_cast<double>(problem.k);
  const StepCosts costs = engine.step_costs(program.split_a);
  const double slices = 1 / static_cast<double>(problem.m) + 1 / static_cast<double>(problem.n);
  return product_time(engine, program, costs) * k + costs.slice * k * slices + costs.sum;
}

double expected_exact_sum(const Problem& problem) {
  const double parts = problem.complex ? 4 : problem.type == OperandType::dd ? 4 : 1;
  return 700 * parts * static_cast<double>(problem.k);
}

}  // namespace kintsugi::core
