#include "front/calls.hpp"

#include <atomic>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "front/check.hpp"
#include "front/describe.hpp"
#include "front/plan_cache.hpp"
#include "schemes/bf16x6_direct.hpp"

namespace kintsugi::core {

namespace {

// Log of a handle, at the level of its setting: passes lines to the caller's function. The library never
// prints.
struct Log {
  kintsugi_handle handle = nullptr;
  kintsugi_log_level level = KINTSUGI_LOG_OFF;  // lines of higher levels are left out

  void write(kintsugi_log_level line_level, const std::string& line) const {
    if (line_level <= level) handle->log(handle->log_user, line_level, line.c_str());
  }
};

// Returns the settings of the settings file. The first call reads the file. If the file is malformed, every
// call fails.
const SettingLayer& settings_of_file() {
  static constinit MadeOnce layer(file_settings);
  return layer.get();
}

Settings settings_for(kintsugi_handle handle, const SettingLayer& call, const SettingLayer& environment) {
  return {call, handle == nullptr ? SettingLayer{} : handle->settings, environment, settings_of_file()};
}
Settings settings_for(kintsugi_handle handle, const SettingLayer& call) {
  return settings_for(handle, call, environment_settings());
}

// Returns the handle's log with its current level; an empty one if the handle has none.
Log log_of(kintsugi_handle handle) {
  if (handle == nullptr || handle->log == nullptr) return {};
  const std::string level = settings_for(handle, {})[SettingId::log].value;
  return {handle, level == "debug"   ? KINTSUGI_LOG_DEBUG
                  : level == "info"  ? KINTSUGI_LOG_INFO
                  : level == "error" ? KINTSUGI_LOG_ERROR
                                     : KINTSUGI_LOG_OFF};
}

// Logs environment variables that begin with KINTSUGI_ but are no settings. The first call whose log accepts
// errors logs them, once per process.
void log_unknown_variables(const Log& log) {
  static std::atomic_flag written;
  if (log.level < KINTSUGI_LOG_ERROR || written.test()) return;
  std::string line;
  for (const UnknownVariable& variable : unknown_variables())
    line += (line.empty() ? "ignored: " : "; ") + describe(variable);
  if (!line.empty() && !written.test_and_set()) log.write(KINTSUGI_LOG_ERROR, line);
}

// Logs an execution. Does not throw: C is written already, so an error in logging must not become a failure
// of the call.
void log_execution(const Log& log, const Report& report) noexcept {
  if (log.handle == nullptr) return;
  try {
    const Plan& plan = *report.plan;
    log_unknown_variables(log);
    if (log.level >= KINTSUGI_LOG_INFO) {
      log.write(KINTSUGI_LOG_INFO,
                fmt::format("gemm m = {}, n = {}, k = {}, batch of {} on engine {}", plan.problem.m,
                            plan.problem.n, plan.problem.k, plan.problem.batch_count, plan.engine->name()));
    }
    if (log.level >= KINTSUGI_LOG_DEBUG) log.write(KINTSUGI_LOG_DEBUG, describe_report(report));
  } catch (...) {
  }
}

// Returns the handle's memory for a device report in the current context. The first call in the context
// allocates it. Returns null if no device report is needed: without a handle, and for host and native plans.
std::shared_ptr<const DeviceReportMemory> reserve_device_report(kintsugi_handle handle, const Plan& plan,
                                                                const Queue& queue) {
  if (handle == nullptr || plan.problem.memory != MemorySpace::device || plan.is_native()) return nullptr;
  return handle->device_reports.of_caller(queue);
}

std::shared_ptr<const Plan> make_uncached_plan(kintsugi_handle handle, const Problem& problem,
                                               const Settings& settings, const CheckedOptions& call) {
  check_queue_of(problem, call.queue);
  auto plan = std::make_shared<const Plan>(make_plan(problem, settings, call.allocator, call.queue));
  // The report's memory is allocated now, because a later execution may be captured in a graph, where nothing
  // can be allocated.
  reserve_device_report(handle, *plan, plan->queue);
  return plan;
}

// Returns the key of the call, without the environment. The key is a variable of the thread, which the
// thread's next call overwrites. In this way calls reuse the memory of the key's strings.
PlanKey& key_of_call(kintsugi_handle handle, const Problem& problem, const CheckedOptions& call) {
  thread_local PlanKey key;
  key.problem = problem;
  key.allocator = call.allocator;
  key.surroundings = surroundings_of(problem);
  key.settings.clear();
  call.append_settings(key.settings);
  if (handle != nullptr) key.settings += handle->settings_text;
  return key;
}

// Makes the plan of the key. Settings come from the environment in the key, since another thread may have
// changed the process's environment meanwhile.
std::shared_ptr<const Plan> make_plan_of_key(kintsugi_handle handle, const PlanKey& key,
                                             const CheckedOptions& call) {
  const Settings settings = settings_for(handle, call.layer(), settings_of_environment(key.environment));
  return std::make_shared<const Plan>(make_plan(key.problem, settings, call.allocator));
}

// Returns the kept plan of an equal call, or makes a plan and keeps it.
std::shared_ptr<const Plan> cached_plan(kintsugi_handle handle, const Problem& problem,
                                        const CheckedOptions& call) {
  PlanKey& key = key_of_call(handle, problem, call);
  key.environment.clear();
  std::shared_ptr<const Plan> kept;
  {
    const auto lock = lock_shared_state();  // one lock for the environment and the kept plans
    append_environment(key.environment);
    kept = plan_cache().find(key);
  }
  // For host matrices the key has no context. If such a plan runs on a device, which the caller has named, it
  // can be used only in the context in which it was made.
  const bool key_has_context = problem.memory == MemorySpace::device;
  if (kept != nullptr && (key_has_context || runs_in_callers_context(*kept))) return kept;
  auto plan = make_plan_of_key(handle, key, call);
  plan_cache().keep(key, plan);
  return plan;
}

// Returns the plan for a call with these prepared operands. The plan is first made as if each of them had the
// slices that the plan needs. If one of them has other slices, it must be split again. Since the policy auto
// counts the time of splits, the plan is then made again with this operand as not prepared.
std::shared_ptr<const Plan> plan_for(kintsugi_handle handle, Problem problem, const CheckedOptions& call,
                                     const GivenPrepared& given) {
  problem.prepared_a = given.a != nullptr;
  problem.prepared_b = given.b != nullptr;
  auto plan = cached_plan(handle, problem, call);
  if (given.a == nullptr && given.b == nullptr) return plan;
  const bool selects_by_time = plan->request.scheme.empty() && plan->request.policy == Policy::automatic;
  if (!selects_by_time || plan->is_native()) return plan;
  problem.prepared_a = given.a != nullptr && has_slices_of(*plan, *given.a);
  problem.prepared_b = given.b != nullptr && has_slices_of(*plan, *given.b);
  return problem == plan->problem ? plan : cached_plan(handle, problem, call);
}

// Fails with not_supported if the caller's rounding mode, which the plan was to follow, is another one now.
void check_rounding(const Plan& plan, RoundingMode now) {
  if (plan.request.rounding || plan.request.is_reproducible() || now == plan.rounding) return;
  fail(Status::not_supported,
       "the plan was made in the rounding mode {}, and the calling thread's is {} now: make a plan in this "
       "mode, or set rounding",
       rounding_name(plan.rounding), rounding_name(now));
}

// Returns the checked operands with the queue of their execution: their own, else `queue`, else the handle's
// stream.
Operands operands_in_queue(const Queue& queue, kintsugi_handle handle, const Plan& plan,
                           const kintsugi_operands* operands) {
  Operands checked = check_operands(plan.problem, operands);
  if (checked.queue.kind == QueueKind::host) checked.queue = queue;
  if (checked.queue.kind == QueueKind::host && handle != nullptr &&
      plan.problem.memory == MemorySpace::device)
    checked.queue = handle->queue;
  return checked;
}

// Keeps the report of an execution in the handle, if there is one.
void keep_report(kintsugi_handle handle, const Log& log, const std::shared_ptr<const Plan>& plan,
                 Report&& report, std::shared_ptr<const DeviceReportMemory>&& device_report) {
  if (handle == nullptr) return;
  report.plan = plan;
  handle->report = std::move(report);
  handle->device_report = std::move(device_report);
  log_execution(log, handle->report);
}

// Executes the plan in the queue of operands_in_queue(). If there is a handle, it gets the report. The
// exceptions of the product are raised with the end of `environment`.
void execute_on(const Queue& queue, kintsugi_handle handle, const std::shared_ptr<const Plan>& plan,
                const kintsugi_operands* operands, FloatingEnvironment& environment) {
  const Log log = log_of(handle);
  Report report;
  std::shared_ptr<const DeviceReportMemory> device_report;
  try {
    Operands checked = operands_in_queue(queue, handle, *plan, operands);
    check_engine_runs(*plan);
    device_report = reserve_device_report(handle, *plan, checked.queue);
    if (device_report != nullptr) checked.device_report = device_report->get();
    execute(*plan, checked, report);
    environment.raise_at_end(report.exceptions);
  } catch (const Error& error) {
    log.write(KINTSUGI_LOG_ERROR, error.what());
    throw;
  }
  keep_report(handle, log, plan, std::move(report), std::move(device_report));
}

// ---------------------------------------------------------------- groups

// Calls body(i) for each group. Messages of errors name the group.
template <class Body>
void for_each_group(std::int64_t count, const Body& body) {
  for (std::int64_t i = 0; i < count; ++i) {
    try {
      body(i);
    } catch (const Error& error) {
      throw Error(error.status(), fmt::format("group {}: {}", i, error.what()));
    }
  }
}

// Struct `i` of an array whose structs have the size of the first one.
template <class Struct>
const Struct* struct_of_group(const Struct* first, std::int64_t i) {
  const auto* bytes = reinterpret_cast<const std::byte*>(first);
  return reinterpret_cast<const Struct*>(bytes + static_cast<std::size_t>(i) * first->struct_size);
}

bool is_direct_alone(const Plan& plan) {
  return plan.candidates.size() == 1 && plan.candidates.front().scheme == &schemes::bf16x6_direct;
}

// Finds the plan by which one launch may compute the group with others: its own; under the policy auto that
// of the scheme, if it reaches the accuracy.
void plan_sharing(kintsugi_handle handle, const CheckedOptions& call, PlannedGroup& group) {
  const std::shared_ptr<const Plan>& plan = group.alone.plan;
  if (!may_share_launch(group.alone)) return;
  if (is_direct_alone(*plan)) group.plan_to_share = plan;
  if (plan->request.policy != Policy::automatic || !plan->request.scheme.empty()) return;
  CheckedOptions named = call;
  named.given.scheme = schemes::bf16x6_direct.name.data();
  try {
    group.plan_to_share = cached_plan(handle, plan->problem, named);
  } catch (const Error&) {  // The group keeps its own plan.
  }
}

void execute_in_one_launch(kintsugi_handle handle, std::span<const GroupCall> groups) {
  const Log log = log_of(handle);
  const std::shared_ptr<const Plan>& plan = groups.front().plan;
  const Queue& queue = groups.front().operands.queue;
  Report report;
  std::shared_ptr<const DeviceReportMemory> device_report;
  try {
    check_engine_runs(*plan);
    device_report = reserve_device_report(handle, *plan, queue);
    execute_groups(groups, queue, device_report != nullptr ? device_report->get() : nullptr, report);
  } catch (const Error& error) {
    log.write(KINTSUGI_LOG_ERROR, error.what());
    throw;
  }
  keep_report(handle, log, plan, std::move(report), std::move(device_report));
}

}  // namespace

Settings settings_in_force(kintsugi_handle handle) { return settings_for(handle, {}); }

std::shared_ptr<const Plan> plan_of_caller(kintsugi_handle handle, const kintsugi_problem* problem,
                                           const kintsugi_options* options) {
  const FloatingEnvironment environment;
  Problem checked = check_problem(problem);
  checked.rounding = environment.rounding();
  if (problem->memory == KINTSUGI_ANY_MEMORY) {
    fail(Status::invalid_argument,
         "memory = KINTSUGI_ANY_MEMORY is for kintsugi_gemm: a plan is for matrices in KINTSUGI_HOST or "
         "KINTSUGI_DEVICE");
  }
  const CheckedOptions call = check_options(options);
  return make_uncached_plan(handle, checked, settings_for(handle, call.layer()), call);
}

std::shared_ptr<const Plan> plan_of_description(kintsugi_handle handle, const char* description,
                                                const kintsugi_options* options) {
  const FloatingEnvironment environment;
  const PlanDescription read = read_plan_description(description);
  const kintsugi_problem problem = to_c(read.problem);
  Problem checked = check_problem(&problem);
  checked.rounding = environment.rounding();
  const CheckedOptions call = check_options(options);
  return make_uncached_plan(handle, checked, settings_for(handle, read.settings), call);
}

void execute_for_caller(kintsugi_handle handle, const std::shared_ptr<const Plan>& plan,
                        const kintsugi_operands* operands) {
  FloatingEnvironment environment;
  check_rounding(*plan, environment.rounding());
  execute_on(plan->queue, handle, plan, operands, environment);
}

void multiply_for_caller(kintsugi_handle handle, const kintsugi_problem* problem,
                         const kintsugi_options* options, const kintsugi_operands* operands) {
  FloatingEnvironment environment;
  Problem checked = check_problem(problem);
  checked.rounding = environment.rounding();
  const CheckedOptions call = check_options(options);
  std::optional<PlaceScope> scope;
  if (problem->memory == KINTSUGI_ANY_MEMORY) {
    if (const auto place = find_memory(operands, checked)) scope.emplace(*place);
  }
  const GivenPrepared given = given_prepared(operands);
  set_adds_to_c(operands, checked);
  check_queue_of(checked, call.queue);
  execute_on(call.queue, handle, plan_for(handle, checked, call, given), operands, environment);
}

void multiply_groups_for_caller(kintsugi_handle handle, std::int64_t count, const kintsugi_problem* problems,
                                const kintsugi_options* options, const kintsugi_operands* operands) {
  FloatingEnvironment environment;
  if (count < 0) fail(Status::invalid_argument, "count = {} groups is negative", count);
  if (count == 0) return;
  check_not_null(problems, "problems");
  check_not_null(operands, "operands");
  const CheckedOptions call = check_options(options);
  std::vector<PlannedGroup> groups(static_cast<std::size_t>(count));
  std::optional<DevicePlace> place;
  std::optional<PlaceScope> scope;
  for_each_group(count, [&](std::int64_t i) {
    const kintsugi_problem* const problem = struct_of_group(problems, i);
    const kintsugi_operands* const given = struct_of_group(operands, i);
    Problem checked = check_problem(problem);
    checked.rounding = environment.rounding();
    const GivenPrepared prepared = given_prepared(given);
    if (problem->memory == KINTSUGI_ANY_MEMORY) {
      const auto found = find_memory(given, checked);
      if (found && !place) scope.emplace(*(place = found));
      if (found && (found->device != place->device || found->context != place->context))
        fail(Status::invalid_argument,
             "its matrices lie on device {}, those of an earlier group on device {} or in another context",
             found->device, place->device);
    }
    set_adds_to_c(given, checked);
    check_queue_of(checked, call.queue);
    PlannedGroup& group = groups[static_cast<std::size_t>(i)];
    group.alone.plan = plan_for(handle, checked, call, prepared);
    group.alone.operands = operands_in_queue(call.queue, handle, *group.alone.plan, given);
    if (group.alone.operands.workspace != nullptr) check_workspace(*group.alone.plan, group.alone.operands);
    plan_sharing(handle, call, group);
  });
  const std::vector<GroupCall> shared = take_groups_of_one_launch(groups);
  for_each_group(count, [&](std::int64_t i) {
    const std::shared_ptr<const Plan>& plan = groups[static_cast<std::size_t>(i)].alone.plan;
    if (plan != nullptr) execute_on(call.queue, handle, plan, struct_of_group(operands, i), environment);
  });
  if (!shared.empty()) execute_in_one_launch(handle, shared);
}

bool multiply_unless_native(const kintsugi_problem& problem, const kintsugi_options* options,
                            const kintsugi_operands& operands) {
  FloatingEnvironment environment;
  Problem checked = check_problem(&problem);
  checked.rounding = environment.rounding();
  const CheckedOptions call = check_options(options);
  const auto plan = plan_for(nullptr, checked, call, {});
  if (plan->is_native() && !plan->is_offloaded() && plan->request.policy != Policy::emulate) return false;
  execute_on(call.queue, nullptr, plan, &operands, environment);
  return true;
}

}  // namespace kintsugi::core
