#include "planner/candidates.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engines/cuda/steps.hpp"
#include "planner/expected_times.hpp"
#include "planner/limits.hpp"
#include "planner/problem.hpp"
#include "schemes/bound.hpp"
#include "schemes/ozaki2.hpp"

namespace kintsugi::core {

namespace {

constexpr bool inside_window = true;  // argument of error_bound(): operands are in the window of the split
constexpr bool outside_window = false;

// Returns the largest split_loss() that a contract of a type allows: 9 u, the contract at k = 1.
double split_limit(const Contract& contract) {
  return contract.accuracy.is_of(OperandType::f32) ? 9 * 0x1p-24 : 9 * 0x1p-53;
}

// Shortens a fallback chain of increasing dynamic ranges to `max_candidates` candidates. If a native
// candidate follows, the widest candidates are removed, since native accepts their operands, too. If none
// follows, the widest candidate must stay. A candidate whose successor has the same cost is then removed
// first. If no candidate has such a successor, the last candidate before the widest one is removed.
void shorten(std::vector<Candidate>& chain, const Engine& engine, std::size_t max_candidates,
             bool native_follows) {
  while (chain.size() > max_candidates) {
    if (native_follows) {
      chain.pop_back();
      continue;
    }
    const auto before_one_of_equal_cost =
        std::adjacent_find(chain.begin(), chain.end(), [&](const Candidate& x, const Candidate& y) {
          return relative_cost(engine, x.program) == relative_cost(engine, y.program);
        });
    const auto before_widest = chain.end() - 2;
    chain.erase(before_one_of_equal_cost != chain.end() ? before_one_of_equal_cost : before_widest);
  }
}

// False if an earlier candidate accepts all operands that this candidate accepts. Some candidates test the
// range of the whole operand, and others the ranges of single rows. The range of the operand may exceed the
// ranges of its rows, so that a test of the operand refuses more operands than a test of rows with the same
// limit.
bool can_be_reached(const Candidate& candidate, const std::vector<Candidate>& earlier) {
  return std::ranges::all_of(earlier, [&](const Candidate& each) {
    const bool is_comparable = candidate.acceptance.whole_operand || !each.acceptance.whole_operand;
    return !is_comparable || candidate.acceptance.dynamic_range > each.acceptance.dynamic_range;
  });
}

}  // namespace

bool is_expected_faster(const Plan& plan, const Program& program) {
  if (program.recombination == Recombination::exact_sums) return false;
  const ExpectedTimes times = expected_times(*plan.engine, program, plan.problem, plan.conditions());
  return times.emulated < limits::max_time_ratio_on_host * times.native;
}

SchemeVariant with_window(const Scheme& scheme, OperandType type) {
  if (!scheme.program.sized_by_type || type != OperandType::f32) return scheme;
  return ozaki2_variant(schemes::ozaki2_moduli_for_f64, scheme.program.split_a.scales);
}

SchemeVariant ozaki2_variant(int moduli_count, ScaleRule scale) {
  return {&schemes::ozaki2,
          schemes::ozaki2_program(moduli_count, scale),
          {.moduli = moduli_count, .scale = scale}};
}

double relative_cost(const Engine& engine, const Program& program) {
  if (program.recombination == Recombination::exact_sums) return std::numeric_limits<double>::infinity();
  // A product of complex residues has k inner indices and n columns; a product of the embedding has 2 k and 2
  // n.
  const double share = program.multiplies_elements() ? 0.25 : 1;
  // With exponents per tile, sums are converted to FP32 after every tile. The conversions take about as long
  // as the products.
  const double conversions = has_tiles(program) ? 2 : 1;
  return share * conversions * static_cast<double>(program.schedule.terms.size()) /
         engine.relative_rate(program.format().id);
}

Program fitted_program(const Scheme& scheme, const Program& program, const Problem& problem) {
  Program fitted = fitted_program(scheme, program, problem.type, problem.products());
  if (problem.complex && scheme.multiply_elements != nullptr && problem.k > 0)
    scheme.multiply_elements(fitted);
  return fitted;
}

Program fitted_program(const Scheme& scheme, const Problem& problem) {
  return fitted_program(scheme, scheme.program, problem);
}

Program fitted_program(const Plan& plan, const SchemeVariant& variant) {
  const Program program = fitted_program(*variant.scheme, variant.program, plan.problem);
  if (!plan.engine->is_device() || !program.multiplies_elements() ||
      cuda::takes_complex_elements(program.split_a))
    return program;
  return fitted_program(*variant.scheme, variant.program, plan.problem.type, plan.problem.products());
}

std::vector<Accumulator> accumulators_of(const Engine& engine, const Program& program, ElementType type,
                                         bool is_named) {
  const FormatId format = program.format().id;
  std::vector<Accumulator> result;
  if (has_tiles(program) &&
      !(engine.is_device() ? cuda::fuses(program.schedule, format, Accumulator::int32, type)
                           : engine.multiplies_tiles()))
    return result;
  if (is_direct(program) &&
      !(engine.is_device() ? cuda::fuses(program.schedule, format, engine.accumulators(format).front(), type)
                           : engine.multiplies_directly()))
    return result;
  for (const Accumulator accumulator : engine.accumulators(format)) {
    // The proof of arith/direct_arithmetic.hpp needs subnormal slices.
    if (is_direct(program) && flushes_subnormals(accumulator)) continue;
    if (!engine.is_device() || !is_tensor_core(accumulator) ||
        cuda::fuses(program.schedule, format, accumulator, type) ||
        (is_named && cuda::compiles(program.schedule, format, accumulator)))
      result.push_back(accumulator);
  }
  return result;
}

bool sums_wrap(const Candidate& candidate, std::int64_t k) {
  return !candidate.program.format().floating &&
         std::isinf(
             error_bound(candidate.program, candidate.accumulator, k, inside_window, inside_window).relative);
}

Schedule schedule_of(const Problem& problem, const Candidate& candidate) {
  const Schedule& schedule = candidate.program.schedule;
  if (!is_tensor_core(candidate.accumulator)) return schedule;
  const double elements = static_cast<double>(problem.m) * static_cast<double>(problem.vectors_b());
  return schedule.shortened(elements, problem.products());
}

std::optional<Candidate> offered(const Plan& plan, const SchemeVariant& variant) {
  if (!variant.scheme->operands.contains(plan.problem.type)) return std::nullopt;
  Candidate candidate{.scheme = variant.scheme,
                      .acceptance = accepts_all,
                      .program = fitted_program(plan, variant),
                      .parameters = variant.parameters};
  if (candidate.program.recombination == Recombination::exact_sums) return candidate;
  const auto possible = accumulators_of(*plan.engine, candidate.program, element_type(plan.problem));
  const auto& wanted = plan.request.accumulator;
  const auto found = wanted ? std::find(possible.begin(), possible.end(), *wanted) : possible.begin();
  if (found == possible.end()) return std::nullopt;
  candidate.accumulator = *found;
  candidate.program.schedule = schedule_of(plan.problem, candidate);
  return sums_wrap(candidate, plan.problem.products()) ? std::nullopt : std::optional(candidate);
}

int proved_depth(const Plan& plan, const Candidate& candidate) {
  const bool finds_depths = plan.engine->is_device() && plan.problem.type == OperandType::f32;
  if (!finds_depths || candidate.program.recombination != Recombination::weighted ||
      !candidate.program.format().floating)
    return 0;
  const std::int64_t k = plan.problem.products();
  const ErrorBound bound =
      error_bound(candidate.program, candidate.accumulator, k, outside_window, outside_window);
  const auto is_proved = [&](int depth) {
    return bound_at_depth(candidate.program, bound, plan.problem.type, k, depth) <= plan.contract.coefficient;
  };
  // A normal FP32 number lies at most 127 + 126 binades below another one. The depths of two vectors are
  // added up.
  constexpr int max_depth = 2 * (127 + 126);
  int depth = 0;
  while (depth < max_depth && is_proved(depth + 1)) ++depth;
  return depth;
}

std::optional<Proved> prove(const Plan& plan, const Candidate& candidate) {
  const Contract& contract = plan.contract;
  const OperandType type = plan.problem.type;
  const std::int64_t k = plan.problem.products();
  const Program& program = candidate.program;
  // Algorithm 3 of Ozaki scheme I only estimates its error. The scheme ozaki2 is proved with fewer products.
  if (program.recombination == Recombination::ozaki1) return std::nullopt;
  Proved proved{candidate, 0};
  if (!program.split_a.scale_vectors || !program.split_b.scale_vectors) return std::nullopt;
  if (contract.accuracy.is_of_type() && split_loss(program) > split_limit(contract)) return std::nullopt;
  const ErrorBound bound = error_bound(program, candidate.accumulator, k, inside_window, inside_window);
  int dynamic_range = std::min(window_range(program.split_a), window_range(program.split_b));
  while (dynamic_range >= 0 &&
         relative_bound(program, bound, type, k, dynamic_range, dynamic_range) > contract.coefficient)
    --dynamic_range;
  if (dynamic_range < 0) return std::nullopt;
  proved.candidate.acceptance.dynamic_range = dynamic_range;
  proved.candidate.acceptance.whole_operand = has_tiles(program);
  // All losses of an integer program are floors. relative_bound() includes them, here at dynamic range 0.
  proved.coefficient =
      program.format().floating ? bound.relative : relative_bound(program, bound, type, k, 0, 0);
  return proved;
}

std::vector<Candidate> proved_emulations(const Plan& plan, EmulationFilter filter) {
  std::vector<Proved> proved;
  for (const Scheme* scheme : all_schemes()) {
    const bool is_apart = has_tiles(scheme->program) || is_direct(scheme->program);
    if (is_apart && plan.engine->is_device()) continue;
    const auto candidate = offered(plan, with_window(*scheme, plan.problem.type));
    if (!candidate || !(filter.include_slower || is_expected_faster(plan, candidate->program))) continue;
    if (auto proof = prove(plan, *candidate)) {
      proof->candidate.acceptance.mean_depth = proved_depth(plan, *candidate);
      proved.push_back(*proof);
    }
  }
  // Candidates are sorted by cost, and at equal cost the more accurate one goes first.
  const auto rank = [&](const Proved& p) {
    return std::pair(relative_cost(*plan.engine, p.candidate.program), p.coefficient);
  };
  std::stable_sort(proved.begin(), proved.end(),
                   [&](const Proved& x, const Proved& y) { return rank(x) < rank(y); });
  std::vector<Candidate> chain;
  for (const auto& [candidate, coefficient] : proved) {
    if (can_be_reached(candidate, chain)) chain.push_back(candidate);
  }
  shorten(chain, *plan.engine, DeviceReport::max_candidates - (filter.native_follows ? 1 : 0),
          filter.native_follows);
  return chain;
}

}  // namespace kintsugi::core
