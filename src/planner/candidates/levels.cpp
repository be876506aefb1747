#include "planner/candidates/levels.hpp"

#include <algorithm>

#include "engines/device_engine.hpp"
#include "planner/candidates/candidates.hpp"
#include "planner/candidates/device_times.hpp"
#include "schemes/mixpert.hpp"

namespace kintsugi::core {

namespace {

constexpr const Scheme* levels[] = {&schemes::mixpert_1, &schemes::mixpert_2, &schemes::mixpert_3,
                                    &schemes::mixpert_4, &schemes::mixpert_full};

SchemeVariant with_depth(const Scheme& scheme, int depth) {
  Program program = scheme.program;
  schemes::set_tile_depth(program, depth);
  return {&scheme, program, {.tile = depth == schemes::mixpert_depth ? 0 : depth}};
}

// A candidate with its expected times.
struct TimedLevel {
  Candidate candidate;
  DeviceTimes times;
};

std::optional<TimedLevel> proved_level(const Plan& plan, const SchemeVariant& variant) {
  const auto candidate = offered(plan, variant);
  if (!candidate || !is_fused(plan, *candidate)) return std::nullopt;
  const auto proof = prove(plan, *candidate);
  if (!proof) return std::nullopt;
  const auto times = expected_device_times(plan, proof->candidate);
  return times ? std::optional(TimedLevel{proof->candidate, *times}) : std::nullopt;
}

std::optional<TimedLevel> fastest_proved_level(const Plan& plan) {
  std::optional<TimedLevel> fastest;
  for (const Scheme* scheme : levels) {
    for (int depth = schemes::mixpert_depth; depth <= deepest_tile; depth *= 2) {
      auto level = proved_level(plan, with_depth(*scheme, depth));
      if (level && (!fastest || level->times.emulated < fastest->times.emulated)) fastest = std::move(level);
    }
  }
  return fastest;
}

bool is_empty(const Problem& problem) {
  return std::min({problem.m, problem.n, problem.k, problem.batch_count}) == 0;
}

}  // namespace

std::optional<Candidate> level_that_pays(const Plan& plan, const Candidate& fastest,
                                         const Candidate& second) {
  // Number of refusals that are expected for each acceptance. Real numbers rarely have a range of only a few
  // binades: of 2^20 uniform numbers the least is about 20 binades below the largest.
  constexpr double refusals = 3;
  if (is_empty(plan.problem)) return std::nullopt;
  const auto level = fastest_proved_level(plan);
  const auto time = expected_device_times(plan, fastest);
  if (!level || !time) return std::nullopt;
  const double max_time = plan.engine->device()->thresholds().max_time_ratio * time->emulated;
  if (level->times.emulated >= max_time) return std::nullopt;
  // Operands are prepared by the first candidate, so that the second one splits them in every call.
  const double saved = time->emulated - level->times.emulated;
  const double splits =
      level->times.emulated - expected_device_times(plan, level->candidate, Slicing::both_prepared)->emulated;
  const double second_time = expected_device_times(plan, second, Slicing::none_prepared)->emulated;
  const double lost = splits + second_time - time->emulated;
  return saved > refusals * lost ? std::optional(level->candidate) : std::nullopt;
}

}  // namespace kintsugi::core
