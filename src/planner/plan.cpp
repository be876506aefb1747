// Makes a plan: request, engine, contract, candidates and blocking.
#include "planner/plan.hpp"

#include <omp.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "base/text/nearest_name.hpp"
#include "base/threads.hpp"
#include "engines/cuda/steps.hpp"
#include "engines/engine.hpp"
#include "engines/registry.hpp"
#include "planner/candidates.hpp"
#include "planner/expected_times.hpp"
#include "planner/memory.hpp"
#include "planner/offload.hpp"
#include "planner/problem.hpp"
#include "schemes/bound.hpp"

namespace kintsugi::core {

namespace {

// Returns the largest size or leading dimension of the problem. The leading dimension of a matrix with a
// single line is not used, so it does not count.
std::int64_t largest_size(const Problem& problem) {
  const auto ld_if_used = [&](std::int64_t ld, std::int64_t rows, std::int64_t columns, Op op) {
    const bool has_contiguous_columns = (problem.layout == Layout::column_major) == (op == Op::none);
    return (has_contiguous_columns ? columns : rows) > 1 ? ld : 0;
  };
  return std::max({problem.m, problem.vectors_b(), problem.products(),
                   ld_if_used(problem.lda, problem.m, problem.k, problem.op_a),
                   ld_if_used(problem.ldb, problem.k, problem.n, problem.op_b),
                   ld_if_used(problem.ldc, problem.m, problem.n, Op::none)});
}

// False for double-double operands on a device, since devices have no kernels for them.
bool multiplies(const Engine& engine, OperandType type) {
  return type != OperandType::dd || !engine.is_device();
}

void check_settings_of(const Engine& engine) {
  if (const std::string refused = engine.refused_setting(); !refused.empty())
    fail(Status::bad_setting, "engine {}: {}", engine.name(), refused);
}

// Returns the first engine that can run here and multiplies in the memory of the matrices. (Host matrices are
// copied to a device only if the caller names the engine.) Adds a warning for each earlier engine that cannot
// run here.
const Engine& first_available_engine(const Problem& problem, std::int64_t size,
                                     std::vector<std::string>& warnings) {
  std::string reasons;
  for (const Engine* engine : all_engines()) {
    if (engine->is_device() != (problem.memory == MemorySpace::device)) continue;
    if (!multiplies(*engine, problem.type)) {
      reasons +=
          fmt::format("; {}: it does not multiply {} operands", engine->name(), type_name(problem.type));
      continue;
    }
    check_settings_of(*engine);
    const std::string reason = engine->unavailable_reason();
    if (reason.empty() && size <= engine->largest_size()) return *engine;
    if (!reason.empty())
      warnings.push_back(fmt::format("engine {} cannot run here: {}", engine->name(), reason));
    reasons += fmt::format("; {}: {}", engine->name(), reason.empty() ? "a size is too large" : reason);
  }
  fail(Status::engine_unavailable, "no engine can multiply matrices in the {} memory{}",
       problem.memory == MemorySpace::device ? "device's" : "host's", reasons);
}

// Fails with engine_unavailable if the engine cannot run here.
void check_runs(const Engine& engine) {
  if (const std::string reason = engine.unavailable_reason(); !reason.empty())
    fail(Status::engine_unavailable, "engine {} cannot run here: {}", engine.name(), reason);
}

// Returns the engine of that name. For an empty name, returns the first engine that can run here and
// multiplies in the memory of the matrices, and adds a warning for each earlier engine that cannot run here.
// Fails with bad_setting, engine_unavailable or not_supported.
const Engine& select_engine(const Problem& problem, const std::string& name,
                            std::vector<std::string>& warnings) {
  const std::int64_t size = largest_size(problem);
  if (name.empty()) return first_available_engine(problem, size, warnings);
  const Engine* engine = find_engine(name);
  if (engine == nullptr) {
    fail(Status::bad_setting, "there is no engine \"{}\"{}", name,
         accepted_names(name, "the engines are", "auto, " + engine_names()));
  }
  check_settings_of(*engine);
  check_runs(*engine);
  if (!multiplies(*engine, problem.type)) {
    fail(Status::not_supported, "engine {} does not multiply {} operands; reference and cpu do", name,
         type_name(problem.type));
  }
  if (problem.memory == MemorySpace::device && !engine->is_device()) {
    fail(Status::not_supported, "engine {} works on the host's memory, and A, B and C are in a device's",
         name);
  }
  if (size > engine->largest_size()) {
    fail(Status::not_supported, "engine {} takes sizes up to {} and one of these is {}", name,
         engine->largest_size(), size);
  }
  return *engine;
}

// Returns the seconds that the first candidate is expected to take on one thread; 0 if the candidate is
// native or its time is not known.
double expected_seconds(const Plan& plan) {
  const Problem& problem = plan.problem;
  const Program& program = plan.candidates.front().program;
  if (plan.is_native() || program.recombination == Recombination::ozaki1) return 0;
  const double time = program.recombination == Recombination::exact_sums
                          ? expected_exact_sums(*plan.engine, problem).of_all *
                                static_cast<double>(problem.m) * static_cast<double>(problem.n)
                          : expected_times(*plan.engine, program, problem, plan.conditions()).emulated;
  return plan.engine->product_seconds(plan.threads) * static_cast<double>(problem.batch_count) * time;
}

// Plans fewer threads for short calls. A call has about eight parallel loops, and every thread takes part in
// the start of each. A thread with less work than min_seconds_of_thread costs as much time as it saves.
void limit_threads(Plan& plan) {
  constexpr double min_seconds_of_thread = 100e-6;
  constexpr double max_seconds_of_short_call = 20e-3;
  const double seconds = expected_seconds(plan);
  if (seconds == 0) return;
  plan.is_short_call = seconds < max_seconds_of_short_call;
  if (plan.is_short_call)
    plan.threads = std::clamp(static_cast<int>(seconds / min_seconds_of_thread), 1, plan.threads);
}

void set_workspace(Plan& plan) {
  plan.blocking = fit_blocking(plan, plan.request.workspace_limit);
  set_steps(plan);
  // An engine with a device copies host matrices to it in stages, without host workspace.
  if (plan.engine->is_device() && plan.problem.memory == MemorySpace::host) plan.workspace_bytes = 0;
}

}  // namespace

std::string Plan::accuracy_text() const {
  const std::string& accuracy = settings[SettingId::accuracy].value;
  return accuracy.empty() ? type_name(problem.type) : accuracy;
}

const Candidate* Plan::checked_candidate() const {
  const auto found = std::find_if(candidates.begin(), candidates.end(),
                                  [](const Candidate& candidate) { return candidate.checked; });
  return found == candidates.end() ? nullptr : &*found;
}

const Candidate* Plan::widest_emulation() const {
  const Candidate* widest = nullptr;
  for (const Candidate& candidate : candidates) {
    if (candidate.scheme != nullptr &&
        (widest == nullptr || candidate.acceptance.dynamic_range >= widest->acceptance.dynamic_range))
      widest = &candidate;
  }
  return widest;
}

// An offloaded plan always runs: the host multiplies if the devices cannot.
void check_engine_runs(const Plan& plan) {
  if (fork_depth() > 0 && !plan.is_offloaded()) check_runs(*plan.engine);
}

PlanSurroundings surroundings_of(const Problem& problem) {
  PlanSurroundings surroundings{
      .context = {}, .threads = usable_threads(omp_get_max_threads()), .fork_depth = fork_depth()};
  if (problem.memory == MemorySpace::device) {
    for (const Engine* engine : all_engines()) {
      if (!engine->is_device() || !engine->unavailable_reason().empty()) continue;
      surroundings.context = cuda::current_context();
      break;
    }
  }
  return surroundings;
}

bool runs_in_callers_context(const Plan& plan) {
  return !plan.engine->is_device() || plan.is_offloaded() || plan.context == cuda::current_context();
}

namespace {

enum class Gain { expected, assumed };  // PlanRequest::assumes_gain

// Makes a plan. If `engine` is nullptr, the settings choose the engine.
Plan plan_with(const Problem& problem, const Settings& given, const Allocator& allocator, const Queue& queue,
               Gain gain, const Engine* engine = nullptr) {
  Plan plan;
  plan.problem = problem;
  plan.allocator = allocator;
  plan.queue = queue;
  plan.settings = without_contradictions(given, problem);
  plan.request = read_request(plan.settings);
  plan.request.assumes_gain = gain == Gain::assumed;
  plan.threads = usable_threads(plan.request.threads == 0 ? omp_get_max_threads() : plan.request.threads);
  plan.engine = engine != nullptr ? engine : &select_engine(problem, plan.request.engine, plan.warnings);
  plan.unit = plan.engine->matrix_unit_state(plan.threads);
  if (plan.engine->is_device()) {
    cuda::prepare_device();
    plan.context = cuda::current_context();
  }
  plan.contract = contract_of(plan.request, problem);
  plan.rounding = rounding_of(plan.request, problem);
  choose_candidates(plan);
  limit_threads(plan);
  set_workspace(plan);
  return plan;
}

}  // namespace

Plan make_plan(const Problem& problem, const Settings& given, const Allocator& allocator,
               const Queue& queue) {
  return offloaded_if_chosen(plan_with(problem, given, allocator, queue, Gain::expected));
}

Plan make_plan_on(const Problem& problem, const Settings& settings, const Engine& engine) {
  return plan_with(problem, settings, {}, {}, Gain::expected, &engine);
}

Plan make_emulating_plan(const Problem& problem, const Settings& settings) {
  return plan_with(problem, settings, {}, {}, Gain::assumed);
}

}  // namespace kintsugi::core
