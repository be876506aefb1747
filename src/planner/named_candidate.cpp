#include "planner/candidates.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "base/text/nearest_name.hpp"
#include "engines/cuda/steps.hpp"
#include "planner/problem.hpp"
#include "schemes/bound.hpp"
#include "schemes/mixpert.hpp"
#include "split/maxima.hpp"

namespace kintsugi::core {

namespace {

// Depths of tiles that the device multiplies with the program's slices of real FP32 elements, as text:
// "32, 64 and 128".
std::string depths_on_device(Program program) {
  std::vector<std::string> depths;
  program.schedule.tiles.pair_exponent = false;
  for (int depth = schemes::mixpert_depth; depth <= deepest_tile; depth *= 2) {
    schemes::set_tile_depth(program, depth);
    if (cuda::fuses(program.schedule, program.format().id, Accumulator::int32, ElementType::f32))
      depths.push_back(std::to_string(depth));
  }
  std::string text;
  for (std::size_t i = 0; i < depths.size(); ++i)
    text += (i == 0 ? "" : i + 1 == depths.size() ? " and " : ", ") + depths[i];
  return text;
}

// Fails with not_supported, because the engine does not multiply the program's slices, which have exponents
// per tile. The message says which programs of the scheme the engine multiplies.
[[noreturn]] void fail_for_tiles(const Plan& plan, const Program& program) {
  const std::string_view engine = plan.engine->name();
  const std::string& scheme = plan.request.scheme;
  constexpr const char* hosts = "the engines reference and cpu have it";
  const std::string depths = plan.engine->is_device() ? depths_on_device(program) : std::string();
  if (depths.empty())
    fail(Status::not_supported,
         "engine {} does not multiply slices with exponents per tile here, which scheme {} asks for; {}",
         engine, scheme, hosts);
  if (program.schedule.tiles.pair_exponent)
    fail(Status::not_supported,
         "engine {} multiplies by exponent=operand alone, and scheme {} asks for exponent=pair; {}", engine,
         scheme, hosts);
  if (plan.problem.complex)
    fail(Status::not_supported,
         "engine {} multiplies slices with exponents per tile of real matrices alone, and the operands of "
         "scheme {} are complex; {} for them, and ozaki2 runs here",
         engine, scheme, hosts);
  fail(Status::not_supported, "engine {} has tiles of {} inner indices, and scheme {} asks for tile={}; {}",
       engine, depths, scheme, program.schedule.tiles.depth, hosts);
}

// Returns the accumulator for a named scheme. Fails with not_supported if the engine offers none, or if it
// does not offer the accumulator that the caller named.
Accumulator select_accumulator(const Plan& plan, const Program& program) {
  const Engine& engine = *plan.engine;
  const Format& format = program.format();
  const auto accumulators = accumulators_of(engine, program, element_type(plan.problem), /*is_named=*/true);
  if (accumulators.empty() && has_tiles(program)) fail_for_tiles(plan, program);
  if (accumulators.empty() && is_direct(program))
    fail(Status::not_supported, "engine {} does not have scheme {}; the engines reference and cpu have it",
         engine.name(), plan.request.scheme);
  if (accumulators.empty()) {
    fail(Status::not_supported, "engine {} does not multiply {}", engine.name(), format.name);
  }
  const auto& wanted = plan.request.accumulator;
  if (!wanted) return accumulators.front();
  const auto found = std::find(accumulators.begin(), accumulators.end(), *wanted);
  if (found != accumulators.end()) return *found;
  std::string offered;
  for (const Accumulator accumulator : accumulators)
    offered += (offered.empty() ? "" : ", ") + std::string(accumulator_name(accumulator));
  fail(Status::not_supported, "engine {} does not add {} products as \"{}\"; it offers {}", engine.name(),
       format.name, accumulator_name(*wanted), offered);
}

const Scheme& named_scheme(const Plan& plan) {
  const std::string& name = plan.request.scheme;
  const Scheme* scheme = find_scheme(name);
  if (scheme == nullptr) {
    fail(Status::bad_setting, "there is no scheme \"{}\"{}", name,
         accepted_names(name.substr(0, name.find(':')), "the schemes are", scheme_names() + ", native"));
  }
  if (!scheme->operands.contains(plan.problem.type)) {
    fail(Status::not_supported, "scheme {} does not take {} operands", name, type_name(plan.problem.type));
  }
  return *scheme;
}

// Fails with not_supported if devices do not have the scheme's split.
void check_split_on_device(const Plan& plan, const SplitRule& rule) {
  if (rule.scales != ScaleRule::exponent) {
    fail(Status::not_supported,
         "engine {} scales residues by exponents alone, and scheme {} asks for scale={}", plan.engine->name(),
         plan.request.scheme, scale_rule_name(rule.scales));
  }
  if (scales_by_maxima(rule)) {
    fail(Status::not_supported,
         "engine {} scales rows and columns by powers of two alone, and scheme {} asks for scale=max; the "
         "engines reference and cpu have it",
         plan.engine->name(), plan.request.scheme);
  }
}

}  // namespace

Candidate named_candidate(const Plan& plan) {
  if (plan.request.scheme == native_scheme) {
    Candidate native{.acceptance = accepts_all};
    native.fixed_order = !plan.engine->is_device() && plan.engine->native_order_is_fixed();
    return native;
  }
  const Scheme& scheme = named_scheme(plan);
  const std::int64_t k = plan.problem.products();
  Candidate candidate{.scheme = &scheme, .acceptance = accepts_all, .program = fitted_program(plan, scheme)};
  if (plan.engine->is_device()) check_split_on_device(plan, candidate.program.split_a);
  if (candidate.program.recombination != Recombination::exact_sums) {
    candidate.accumulator = select_accumulator(plan, candidate.program);
    candidate.program.schedule = schedule_of(plan.problem, candidate);
    if (sums_wrap(candidate, k)) {
      fail(Status::not_supported, "scheme {}: sums of {} products may wrap in {}", plan.request.scheme, k,
           accumulator_name(candidate.accumulator));
    }
  }
  if (plan.problem.memory == MemorySpace::device)
    candidate.acceptance.exponent = largest_exponent(candidate, k);
  return candidate;
}

std::int32_t largest_exponent(const Candidate& candidate, std::int64_t k) {
  if (candidate.scheme->adapt == nullptr) return Acceptance::any;
  if (candidate.scheme->fits_residuals()) return candidate.program.largest_fitted_exponent();
  // `exponent` is the exponent of the largest magnitudes of both operands.
  const auto leaves_program_unchanged = [&](std::int32_t exponent) {
    Program program = candidate.program;
    RangeSummary summary;
    summary.largest = exponent;
    try {
      candidate.scheme->adapt(program, summary, summary, k);
    } catch (const Error&) {
      return false;
    }
    return program.split_a == candidate.program.split_a && program.split_b == candidate.program.split_b;
  };
  std::int32_t exponent = 127;
  while (exponent > -149 && !leaves_program_unchanged(exponent)) --exponent;
  if (leaves_program_unchanged(exponent)) return exponent;
  fail(Status::not_supported,
       "scheme {} is fitted to the operands' exponents, which the host does not know of matrices in device "
       "memory",
       candidate.scheme->name);
}

}  // namespace kintsugi::core
