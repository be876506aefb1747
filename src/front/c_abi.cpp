// The C ABI. Checks arguments, calls the library, and turns exceptions into status numbers.
#include <cstring>
#include <new>
#include <optional>

#include "base/floating_environment.hpp"
#include "base/stack.hpp"
#include "base/threads.hpp"
#include "base/version.hpp"
#include "calibrate/calibrate.hpp"
#include "execute/device/memory.hpp"
#include "front/calls.hpp"
#include "front/check.hpp"
#include "front/describe.hpp"
#include "front/plan_cache.hpp"
#include "planner/expected_times.hpp"

using namespace kintsugi::core;

namespace {

// Returns the expected time of the vendor library's product on a device; 0 if it is not known.
double expected_native_seconds(const Plan& plan) {
  const Problem& problem = plan.problem;
  const bool is_empty = problem.m == 0 || problem.n == 0 || problem.k == 0 || problem.batch_count == 0;
  if (!plan.engine->is_device() || is_empty) return 0;
  for (const Candidate& candidate : plan.candidates) {
    if (candidate.scheme == nullptr) continue;
    const auto times = expected_device_times(plan, candidate);
    return times ? times->native * 1e-6 : 0;
  }
  return 0;
}

// Runs a call's body and turns every exception into a status.
template <class Body>
kintsugi_status status_of(Body& body) noexcept {
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
  } catch (...) {  // There is no memory for the message.
    return KINTSUGI_OUT_OF_MEMORY;
  }
}

// The same, on a stack of its own if the thread has little left.
template <class Body>
kintsugi_status guarded(Body&& body) noexcept {
  kintsugi_status status = KINTSUGI_OUT_OF_MEMORY;
  auto run = [&]() noexcept { status = status_of(body); };
  if (run_with_enough_stack(run)) return status;
  auto refuse = [] {
    fail(Status::out_of_memory, "no memory for a stack, of which the thread has less than {} bytes left",
         enough_stack_bytes);
  };
  return status_of(refuse);
}

// Checks the arguments of kintsugi_prepare and returns the prepared operand. `target` is only checked: the
// caller stores the result in it.
kintsugi_prepared checked_prepare(kintsugi_plan given, kintsugi_side side, const void* data,
                                  const kintsugi_prepared* target, Original original) {
  const FloatingEnvironment environment;
  check_not_null(given, "plan");
  check_not_null(target, "prepared");
  if (side != KINTSUGI_A && side != KINTSUGI_B) {
    fail(Status::invalid_argument, "side = {} is neither KINTSUGI_A (0) nor KINTSUGI_B (1)",
         static_cast<int>(side));
  }
  const Plan& plan = *given->plan;
  check_data(plan.problem, data, side == KINTSUGI_A ? "a" : "b");
  check_engine_runs(plan);
  return new kintsugi_prepared_s{prepare(plan, side == KINTSUGI_A ? Side::a : Side::b, data, original)};
}

// Returns the report of the handle's last execution. What only a device knows of it is read into `of_device`.
const Report& read_report(const kintsugi_handle_s& handle, std::optional<Report>& of_device) {
  if (handle.device_report == nullptr) return handle.report;
  handle.device_report->read(of_device.emplace(handle.report));
  return *of_device;
}

// Writes as much of the text as fits the buffer. The arguments are those of kintsugi_plan_describe().
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

// Return problem and operands of a product with the arguments of BLAS. A, B, C and the scalars have the type.
kintsugi_problem problem_of(kintsugi_type type, int32_t layout, int32_t op_a, int32_t op_b, int64_t m,
                            int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc,
                            kintsugi_memory memory) {
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
  problem.memory = memory;
  return problem;
}
kintsugi_operands operands_of(const void* alpha, const void* a, const void* b, const void* beta, void* c) {
  kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
  operands.alpha = alpha;
  operands.a = a;
  operands.b = b;
  operands.beta = beta;
  operands.c = c;
  return operands;
}

// Multiplies matrices of any memory. The arguments are those of BLAS.
kintsugi_status gemm_of_type(kintsugi_type type, kintsugi_handle handle, kintsugi_layout layout,
                             kintsugi_op op_a, kintsugi_op op_b, int64_t m, int64_t n, int64_t k,
                             const void* alpha, const void* a, int64_t lda, const void* b, int64_t ldb,
                             const void* beta, void* c, int64_t ldc) {
  const kintsugi_problem problem =
      problem_of(type, layout, op_a, op_b, m, n, k, lda, ldb, ldc, KINTSUGI_ANY_MEMORY);
  const kintsugi_operands operands = operands_of(alpha, a, b, beta, c);
  return kintsugi_gemm(handle, &problem, nullptr, &operands);
}

// Returns the kintsugi_op for a letter of BLAS or a number of CBLAS; -1 for any other value.
int32_t op_of_blas(int32_t op) {
  switch (op) {
    case 'N':
    case 'n':
    case 111: return KINTSUGI_OP_N;
    case 'T':
    case 't':
    case 112: return KINTSUGI_OP_T;
    case 'C':
    case 'c':
    case 113: return KINTSUGI_OP_C;
    default: return -1;
  }
}
int32_t layout_of_cblas(int32_t layout) {
  return layout == 101 ? KINTSUGI_ROW_MAJOR : layout == 102 ? KINTSUGI_COLUMN_MAJOR : -1;
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
    handle->settings_text = handle->settings.text();
  });
}

kintsugi_status kintsugi_set_stream(kintsugi_handle handle, void* stream) {
  return guarded([&] {
    check_not_null(handle, "handle");
    handle->queue = {QueueKind::cuda, stream};
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
    *plan = new kintsugi_plan_s{.plan = plan_of_caller(handle, problem, options)};
  });
}

kintsugi_status kintsugi_plan_read(kintsugi_handle handle, const char* description,
                                   const kintsugi_options* options, kintsugi_plan* plan) {
  return guarded([&] {
    check_not_null(description, "description");
    check_not_null(plan, "plan");
    *plan = new kintsugi_plan_s{.plan = plan_of_description(handle, description, options)};
  });
}

void kintsugi_plan_destroy(kintsugi_plan plan) { delete plan; }

kintsugi_status kintsugi_plan_workspace_size(kintsugi_plan plan, size_t* bytes) {
  return guarded([&] {
    check_not_null(plan, "plan");
    check_not_null(bytes, "bytes");
    *bytes = plan->plan->workspace_bytes;
  });
}

kintsugi_status kintsugi_plan_problem(kintsugi_plan plan, kintsugi_problem* problem) {
  return guarded([&] {
    check_not_null(plan, "plan");
    check_not_null(problem, "problem");
    write_problem(plan->plan->problem, problem);
  });
}

kintsugi_status kintsugi_plan_describe(kintsugi_plan plan, char* buffer, size_t capacity, size_t* needed) {
  return guarded([&] {
    check_not_null(plan, "plan");
    write_text(describe_plan(*plan->plan), buffer, capacity, needed);
  });
}

kintsugi_status kintsugi_plan_summarize(kintsugi_plan plan, kintsugi_plan_summary* summary) {
  return guarded([&] {
    check_not_null(plan, "plan");
    const Plan& made = *plan->plan;
    std::call_once(plan->made_words, [&] { plan->words = words_of(made); });
    write_summary({.struct_size = sizeof(kintsugi_plan_summary),
                   .is_native = made.is_native(),
                   .may_be_native = made.candidates.back().scheme == nullptr,
                   .is_offloaded = made.is_offloaded(),
                   .reserved = 0,
                   .candidates = plan->words.candidates.c_str(),
                   .reason = plan->words.reason.c_str(),
                   .offload = made.offload_words.c_str(),
                   .native_seconds = expected_native_seconds(made)},
                  summary);
  });
}

kintsugi_status kintsugi_plan_execute(kintsugi_handle handle, kintsugi_plan plan,
                                      const kintsugi_operands* operands) {
  return guarded([&] {
    check_not_null(plan, "plan");
    execute_for_caller(handle, plan->plan, operands);
  });
}

kintsugi_status kintsugi_prepare(kintsugi_handle, kintsugi_plan plan, kintsugi_side side, const void* data,
                                 kintsugi_prepared* prepared) {
  return guarded([&] { *prepared = checked_prepare(plan, side, data, prepared, Original::copied); });
}

kintsugi_status kintsugi_prepare_borrowed(kintsugi_handle, kintsugi_plan plan, kintsugi_side side,
                                          const void* data, kintsugi_prepared* prepared) {
  return guarded([&] { *prepared = checked_prepare(plan, side, data, prepared, Original::borrowed); });
}

void kintsugi_prepared_destroy(kintsugi_prepared prepared) { delete prepared; }

kintsugi_status kintsugi_gemm(kintsugi_handle handle, const kintsugi_problem* problem,
                              const kintsugi_options* options, const kintsugi_operands* operands) {
  return guarded([&] { multiply_for_caller(handle, problem, options, operands); });
}

kintsugi_status kintsugi_gemm_grouped(kintsugi_handle handle, int64_t count, const kintsugi_problem* problems,
                                      const kintsugi_options* options, const kintsugi_operands* operands) {
  return guarded([&] { multiply_groups_for_caller(handle, count, problems, options, operands); });
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

kintsugi_replacement kintsugi_replace_gemm(const kintsugi_options* options, kintsugi_type type,
                                           int32_t layout, int32_t op_a, int32_t op_b, int64_t m, int64_t n,
                                           int64_t k, const void* alpha, const void* a, int64_t lda,
                                           const void* b, int64_t ldb, const void* beta, void* c,
                                           int64_t ldc) {
  const kintsugi_problem problem = problem_of(type, layout_of_cblas(layout), op_of_blas(op_a),
                                              op_of_blas(op_b), m, n, k, lda, ldb, ldc, KINTSUGI_HOST);
  if (guarded([&] { check_problem(&problem); }) != KINTSUGI_SUCCESS) return KINTSUGI_LEFT_TO_BLAS;
  const kintsugi_operands operands = operands_of(alpha, a, b, beta, c);
  bool is_computed = false;
  const kintsugi_status status =
      guarded([&] { is_computed = multiply_unless_native(problem, options, operands); });
  if (status != KINTSUGI_SUCCESS) return KINTSUGI_REPLACEMENT_FAILED;
  return is_computed ? KINTSUGI_REPLACED : KINTSUGI_LEFT_TO_BLAS;
}

kintsugi_status kintsugi_release_caches(void) {
  return guarded([] {
    plan_cache().clear();
    release_kept_block();
    release_kept_stack();
    release_device_caches();
  });
}

int kintsugi_set_threads(int threads) {
  if (threads >= 0) thread_limit = threads;
  return surroundings_of({}).threads;
}

kintsugi_status kintsugi_report(kintsugi_handle handle, char* buffer, size_t capacity, size_t* needed) {
  return guarded([&] {
    check_not_null(handle, "handle");
    std::optional<Report> of_device;
    write_text(describe_report(read_report(*handle, of_device)), buffer, capacity, needed);
  });
}

kintsugi_status kintsugi_report_summarize(kintsugi_handle handle, kintsugi_report_summary* summary) {
  return guarded([&] {
    check_not_null(handle, "handle");
    std::optional<Report> of_device;
    const Report& report = read_report(*handle, of_device);
    const std::optional<OffloadReport>& offload = handle->report.offload;
    handle->report_scheme = multiplied_by(report);
    write_summary({.struct_size = sizeof(kintsugi_report_summary),
                   .scheme = handle->report_scheme.c_str(),
                   .offload_obstacle = offload ? offload->host_reason.c_str() : "",
                   .recomputed_elements = report.recomputed_elements,
                   .items_with_special_values = report.items_with_special_values,
                   .offload_devices = offload ? offload->devices : 0,
                   .reserved = 0},
                  summary);
  });
}

kintsugi_status kintsugi_calibrate(const kintsugi_calibration* calibration) {
  return guarded([&] {
    const FloatingEnvironment environment;
    const kintsugi_calibration given = check_calibration(calibration);
    const auto report_progress = [&](double done, const std::string& step) {
      if (given.progress != nullptr) given.progress(given.progress_user, done, step.c_str());
    };
    const std::string file = calibrate_device({.engine = given.engine == nullptr ? "" : given.engine,
                                               .file = given.file == nullptr ? "" : given.file,
                                               .quick = given.quick != 0,
                                               .blind = given.blind != 0},
                                              report_progress);
    plan_cache().clear();  // the kept plans were made with costs of the old profile
    report_progress(1, file);
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
  return guarded([&] { write_text(describe_settings(settings_in_force(handle)), buffer, capacity, needed); });
}

}  // extern "C"
