// The C ABI: checks, calls, and exceptions turned into status numbers.
#include <atomic>
#include <cstring>
#include <new>

#include "base/floating_environment.hpp"
#include "base/fork.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "front/check.hpp"
#include "front/handles.hpp"
#include "planner/describe/plan.hpp"
#include "planner/describe/registries.hpp"

using namespace kintsugi::core;

namespace {

// Runs a call's body and turns every exception into a status.
template <class Body>
kintsugi_status guarded(Body&& body) noexcept {
  try {
    try {
      body();
      return KINTSUGI_SUCCESS;
    } catch (const Error& error) {
      set_last_error(error.what());
      return static_cast<kintsugi_status>(error.status());
    } catch (const std::bad_alloc&) {
      set_last_error("the C++ runtime has no memory for a small object");
      return KINTSUGI_OUT_OF_MEMORY;
    } catch (const std::exception& error) {
      set_last_error(std::string("unexpected: ") + error.what());
      return KINTSUGI_INTERNAL;
    } catch (...) {
      set_last_error("an exception that is no std::exception");
      return KINTSUGI_INTERNAL;
    }
  } catch (...) {  // no memory for the message
    return KINTSUGI_OUT_OF_MEMORY;
  }
}

// Returns the layer of the settings file, which is read once; every call reports an invalid file.
const SettingLayer& settings_of_file() {
  static constinit MadeOnce layer(file_settings);
  return layer.get();
}

Settings settings_in_force(kintsugi_handle handle, const SettingLayer& call) {
  return {call, handle == nullptr ? SettingLayer{} : handle->settings, environment_settings(),
          settings_of_file()};
}

// Returns the handle's sink with the level in force; empty if the handle has no sink.
LogSink log_of(kintsugi_handle handle) {
  if (handle == nullptr || handle->log == nullptr) return {};
  const std::string level = settings_in_force(handle, {})[SettingId::log].value;
  LogSink sink;
  sink.user = handle;
  sink.function = [](void* user, LogLevel line_level, const char* message) {
    const auto* self = static_cast<kintsugi_handle>(user);
    self->log(self->log_user, static_cast<kintsugi_log_level>(line_level), message);
  };
  sink.level = level == "debug"   ? LogLevel::debug
               : level == "info"  ? LogLevel::info
               : level == "error" ? LogLevel::error
                                  : LogLevel::off;
  return sink;
}

// Logs unknown variables in one line per process, in the first call whose sink accepts it.
void log_unknown_variables(const LogSink& log) {
  static std::atomic_flag written;
  if (log.function == nullptr || log.level < LogLevel::error || written.test()) return;
  std::string line;
  for (const UnknownVariable& variable : unknown_variables())
    line += (line.empty() ? "ignored: " : "; ") + describe(variable);
  if (!line.empty() && !written.test_and_set()) log.write(LogLevel::error, line);
}

// Logs an execution. C is already written, so no error from here on may fail the call.
void log_execution(const LogSink& log, const Plan& plan, const Report& report) noexcept {
  try {
    log_unknown_variables(log);
    if (log.level >= LogLevel::info) {
      log.write(LogLevel::info,
                fmt::format("gemm m = {}, n = {}, k = {}, batch of {} on engine {}", plan.problem.m,
                            plan.problem.n, plan.problem.k, plan.problem.batch_count, plan.engine->name()));
    }
    if (log.level >= LogLevel::debug) log.write(LogLevel::debug, describe_report(report));
  } catch (...) {  // errors of the caller's sink are ignored
  }
}

// Returns memory for the device's report, made with the plan, since an execution may be captured in a graph.
// nullptr if no report can be requested, or if the host has all of it, as for native products.
std::shared_ptr<const DeviceReportMemory> device_report(kintsugi_handle handle, const Plan& plan,
                                                        const Queue& queue) {
  if (handle == nullptr || plan.problem.memory != MemorySpace::device || plan.is_native()) return nullptr;
  return handle->device_reports.of_caller(*plan.engine, queue);
}

Plan planned(kintsugi_handle handle, const Problem& problem, const Settings& settings,
             const CheckedOptions& call) {
  check_queue_of(problem, call.queue);
  Plan plan = make_plan(problem, settings, call.allocator, call.queue);
  device_report(handle, plan, plan.queue);
  return plan;
}

Plan checked_plan(kintsugi_handle handle, const kintsugi_problem* problem, const kintsugi_options* options) {
  const FloatingEnvironment environment;
  const Problem checked = check_problem(problem);
  const CheckedOptions call = check_options(options);
  return planned(handle, checked, settings_in_force(handle, call.layer), call);
}

// Makes a plan for the prepared operands that were given. Under the policy auto an operand that would have to
// be split again, since it was prepared for another program, counts as not prepared.
Plan checked_plan(kintsugi_handle handle, const kintsugi_problem* problem, const kintsugi_options* options,
                  const kintsugi_operands* operands) {
  const FloatingEnvironment environment;
  Problem checked = check_problem(problem);
  const CheckedOptions call = check_options(options);
  const GivenPrepared given = given_prepared(operands);
  const Settings settings = settings_in_force(handle, call.layer);
  checked.prepared_a = given.a != nullptr;
  checked.prepared_b = given.b != nullptr;
  Plan plan = planned(handle, checked, settings, call);
  const bool by_time = plan.request.scheme.empty() && plan.request.policy == Policy::automatic;
  if (!by_time || plan.is_native()) return plan;
  checked.prepared_a = given.a != nullptr && has_slices_of(plan, *given.a);
  checked.prepared_b = given.b != nullptr && has_slices_of(plan, *given.b);
  const bool as_counted =
      checked.prepared_a == plan.problem.prepared_a && checked.prepared_b == plan.problem.prepared_b;
  return as_counted ? plan : planned(handle, checked, settings, call);
}

void checked_execute(kintsugi_handle handle, const Plan& plan, const kintsugi_operands* operands) {
  const FloatingEnvironment environment;
  const LogSink log = log_of(handle);
  Report report;
  std::shared_ptr<const DeviceReportMemory> on_device;
  try {
    Operands checked = check_operands(plan.problem, operands);
    check_engine_runs(plan);
    on_device = device_report(handle, plan, queue_of(plan, checked));
    if (on_device != nullptr) checked.device_report = on_device->get();
    execute(plan, checked, report);
  } catch (const Error& error) {
    log.write(LogLevel::error, error.what());
    throw;
  }
  if (handle != nullptr) {
    handle->report = report;
    handle->device_report = on_device;
  }
  log_execution(log, plan, report);
}

kintsugi_prepared checked_prepare(kintsugi_plan plan, kintsugi_side side, const void* data,
                                  const kintsugi_prepared* prepared, bool borrow) {
  const FloatingEnvironment environment;
  check_not_null(plan, "plan");
  check_not_null(prepared, "prepared");
  if (side != KINTSUGI_A && side != KINTSUGI_B) {
    fail(Status::invalid_argument, "side = {} is neither 0 (A) nor 1 (B)", static_cast<int>(side));
  }
  check_data(plan->plan.problem, data, side == KINTSUGI_A ? "a" : "b");
  check_engine_runs(plan->plan);
  return new kintsugi_prepared_s{prepare(plan->plan, side == KINTSUGI_A ? Side::a : Side::b, data, borrow)};
}

void write_text(const std::string& text, char* buffer, size_t capacity, size_t* needed) {
  if (buffer == nullptr && capacity != 0) {
    fail(Status::invalid_argument, "buffer is null and capacity = {}", capacity);
  }
  if (needed != nullptr) *needed = text.size() + 1;
  if (capacity == 0) return;
  const size_t length = std::min(text.size(), capacity - 1);
  std::memcpy(buffer, text.data(), length);
  buffer[length] = '\0';
}

// Multiplies with BLAS's arguments: all four types equal, the handle's settings.
kintsugi_status gemm_of_type(kintsugi_type type, kintsugi_handle handle, kintsugi_layout layout,
                             kintsugi_op op_a, kintsugi_op op_b, int64_t m, int64_t n, int64_t k,
                             const void* alpha, const void* a, int64_t lda, const void* b, int64_t ldb,
                             const void* beta, void* c, int64_t ldc) {
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = type;
  problem.layout = layout;
  problem.op_a = op_a;
  problem.op_b = op_b;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.lda = lda;
  problem.ldb = ldb;
  problem.ldc = ldc;
  kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
  operands.alpha = alpha;
  operands.a = a;
  operands.b = b;
  operands.beta = beta;
  operands.c = c;
  return kintsugi_gemm(handle, &problem, nullptr, &operands);
}

}  // namespace

extern "C" {

const char* kintsugi_status_name(kintsugi_status status) { return status_name(static_cast<Status>(status)); }

const char* kintsugi_last_error(void) { return last_error(); }

const char* kintsugi_version(void) { return library_version; }

kintsugi_status kintsugi_create(kintsugi_handle* handle) {
  return guarded([&] {
    check_not_null(handle, "handle");
    *handle = new kintsugi_handle_s;
  });
}

void kintsugi_destroy(kintsugi_handle handle) { delete handle; }

kintsugi_status kintsugi_set(kintsugi_handle handle, const char* name, const char* value) {
  return guarded([&] {
    check_not_null(handle, "handle");
    check_not_null(name, "name");
    const SettingDescription& setting = find_setting(name);
    refuse_environment_only(setting, "kintsugi_set");
    handle->settings.set(setting, value == nullptr ? std::nullopt : std::optional<std::string>(value),
                         "kintsugi_set");
  });
}

kintsugi_status kintsugi_set_log(kintsugi_handle handle, kintsugi_log sink, void* user) {
  return guarded([&] {
    check_not_null(handle, "handle");
    handle->log = sink;
    handle->log_user = user;
  });
}

kintsugi_status kintsugi_plan_create(kintsugi_handle handle, const kintsugi_problem* problem,
                                     const kintsugi_options* options, kintsugi_plan* plan) {
  return guarded([&] {
    check_not_null(plan, "plan");
    *plan = new kintsugi_plan_s{checked_plan(handle, problem, options)};
  });
}

kintsugi_status kintsugi_plan_read(kintsugi_handle handle, const char* description,
                                   const kintsugi_options* options, kintsugi_plan* plan) {
  return guarded([&] {
    const FloatingEnvironment environment;
    check_not_null(description, "description");
    check_not_null(plan, "plan");
    const PlanDescription read = read_plan_description(description);
    const kintsugi_problem problem = to_c(read.problem);
    const CheckedOptions call = check_options(options);
    *plan = new kintsugi_plan_s{
        planned(handle, check_problem(&problem), settings_in_force(handle, read.settings), call)};
  });
}

void kintsugi_plan_destroy(kintsugi_plan plan) { delete plan; }

kintsugi_status kintsugi_plan_workspace_size(kintsugi_plan plan, size_t* bytes) {
  return guarded([&] {
    check_not_null(plan, "plan");
    check_not_null(bytes, "bytes");
    *bytes = plan->plan.workspace_bytes;
  });
}

kintsugi_status kintsugi_plan_problem(kintsugi_plan plan, kintsugi_problem* problem) {
  return guarded([&] {
    check_not_null(plan, "plan");
    check_not_null(problem, "problem");
    write_problem(plan->plan.problem, problem);
  });
}

kintsugi_status kintsugi_plan_describe(kintsugi_plan plan, char* buffer, size_t capacity, size_t* needed) {
  return guarded([&] {
    check_not_null(plan, "plan");
    write_text(describe_plan(plan->plan), buffer, capacity, needed);
  });
}

kintsugi_status kintsugi_plan_execute(kintsugi_handle handle, kintsugi_plan plan,
                                      const kintsugi_operands* operands) {
  return guarded([&] {
    check_not_null(plan, "plan");
    checked_execute(handle, plan->plan, operands);
  });
}

kintsugi_status kintsugi_prepare(kintsugi_handle, kintsugi_plan plan, kintsugi_side side, const void* data,
                                 kintsugi_prepared* prepared) {
  return guarded([&] { *prepared = checked_prepare(plan, side, data, prepared, false); });
}

kintsugi_status kintsugi_prepare_borrowed(kintsugi_handle, kintsugi_plan plan, kintsugi_side side,
                                          const void* data, kintsugi_prepared* prepared) {
  return guarded([&] { *prepared = checked_prepare(plan, side, data, prepared, true); });
}

void kintsugi_prepared_destroy(kintsugi_prepared prepared) { delete prepared; }

kintsugi_status kintsugi_gemm(kintsugi_handle handle, const kintsugi_problem* problem,
                              const kintsugi_options* options, const kintsugi_operands* operands) {
  return guarded(
      [&] { checked_execute(handle, checked_plan(handle, problem, options, operands), operands); });
}

kintsugi_status kintsugi_sgemm(kintsugi_handle handle, kintsugi_layout layout, kintsugi_op op_a,
                               kintsugi_op op_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                               int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  return gemm_of_type(KINTSUGI_F32, handle, layout, op_a, op_b, m, n, k, &alpha, a, lda, b, ldb, &beta, c,
                      ldc);
}

kintsugi_status kintsugi_dgemm(kintsugi_handle handle, kintsugi_layout layout, kintsugi_op op_a,
                               kintsugi_op op_b, int64_t m, int64_t n, int64_t k, double alpha,
                               const double* a, int64_t lda, const double* b, int64_t ldb, double beta,
                               double* c, int64_t ldc) {
  return gemm_of_type(KINTSUGI_F64, handle, layout, op_a, op_b, m, n, k, &alpha, a, lda, b, ldb, &beta, c,
                      ldc);
}

kintsugi_status kintsugi_cgemm(kintsugi_handle handle, kintsugi_layout layout, kintsugi_op op_a,
                               kintsugi_op op_b, int64_t m, int64_t n, int64_t k, const void* alpha,
                               const void* a, int64_t lda, const void* b, int64_t ldb, const void* beta,
                               void* c, int64_t ldc) {
  return gemm_of_type(KINTSUGI_C32, handle, layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

kintsugi_status kintsugi_zgemm(kintsugi_handle handle, kintsugi_layout layout, kintsugi_op op_a,
                               kintsugi_op op_b, int64_t m, int64_t n, int64_t k, const void* alpha,
                               const void* a, int64_t lda, const void* b, int64_t ldb, const void* beta,
                               void* c, int64_t ldc) {
  return gemm_of_type(KINTSUGI_C64, handle, layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

kintsugi_status kintsugi_ddgemm(kintsugi_handle handle, kintsugi_layout layout, kintsugi_op op_a,
                                kintsugi_op op_b, int64_t m, int64_t n, int64_t k, const kintsugi_dd* alpha,
                                const kintsugi_dd* a, int64_t lda, const kintsugi_dd* b, int64_t ldb,
                                const kintsugi_dd* beta, kintsugi_dd* c, int64_t ldc) {
  return gemm_of_type(KINTSUGI_DD, handle, layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

kintsugi_status kintsugi_report(kintsugi_handle handle, char* buffer, size_t capacity, size_t* needed) {
  return guarded([&] {
    check_not_null(handle, "handle");
    Report report = handle->report;
    if (handle->device_report != nullptr) handle->device_report->read(report);
    write_text(describe_report(report), buffer, capacity, needed);
  });
}

kintsugi_status kintsugi_describe_schemes(char* buffer, size_t capacity, size_t* needed) {
  return guarded([&] { write_text(describe_schemes(), buffer, capacity, needed); });
}

kintsugi_status kintsugi_describe_engines(char* buffer, size_t capacity, size_t* needed) {
  return guarded([&] { write_text(describe_engines(), buffer, capacity, needed); });
}

kintsugi_status kintsugi_describe_settings(kintsugi_handle handle, char* buffer, size_t capacity,
                                           size_t* needed) {
  return guarded(
      [&] { write_text(describe_settings(settings_in_force(handle, {})), buffer, capacity, needed); });
}

}  // extern "C"
