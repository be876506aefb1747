#include "multiply.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
#include <optional>

#include "common/documents.hpp"
#include "decision.hpp"
#include "saved_matrix.hpp"
#include "settings.hpp"

namespace kintsugi::blas {

namespace {

struct HandleDeleter {
  void operator()(kintsugi_handle handle) const { kintsugi_destroy(handle); }
};
using Handle = std::unique_ptr<kintsugi_handle_s, HandleDeleter>;

Handle new_handle() {
  kintsugi_handle handle = nullptr;
  return Handle(kintsugi_create(&handle) == KINTSUGI_SUCCESS ? handle : nullptr);
}

kintsugi_operands operands_of(const Call& call) {
  kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
  operands.alpha = call.alpha;
  operands.a = call.a;
  operands.b = call.b;
  operands.beta = call.beta;
  operands.c = call.c;
  return operands;
}

kintsugi_status library_gemm(kintsugi_handle handle, const Call& call, const char* accuracy,
                             const char* policy) {
  const kintsugi_problem problem = problem_of(call);
  const kintsugi_operands operands = operands_of(call);
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.accuracy = accuracy;
  options.policy = policy;
  return kintsugi_gemm(handle, &problem, &options, &operands);
}

// Copies the handle's report of the last execution to the outcome. Does not throw: the caller would take an
// exception as a failure before C was written, and compute C twice.
void note_execution(kintsugi_handle handle, CallOutcome& outcome) noexcept try {
  if (handle == nullptr) return;
  const drop_in::ExecutionSummary summary = drop_in::summary_of(handle);
  // summary.program is "native" for a native product, and "" if nothing was multiplied. outcome.program is ""
  // in both cases, and outcome.only_scaled tells them apart.
  outcome.program = summary.program == "native" ? "" : summary.program;
  outcome.only_scaled = summary.program.empty();
  outcome.recomputed_elements = summary.recomputed_elements;
  outcome.has_special_values = summary.has_special_values;
  outcome.is_offloaded = summary.is_offloaded;
  if (summary.offload_obstacle.empty()) return;
  outcome.offload_failed = true;
  outcome.why = "Offload failed, so the host multiplied: " + summary.offload_obstacle;
} catch (const std::exception&) {  // No memory: the record has no counts for this call.
}

// Executes the plan. If the product was native under the policy `force`, restores C and computes it again
// with the accuracy `exact`, which is always emulated.
kintsugi_status execute(const Decision& decision, const Call& call, CallOutcome& outcome) {
  const bool must_redo_native = settings().policy == Policy::force && decision.may_be_native;
  const Handle handle = must_redo_native || settings().records_calls() ? new_handle() : Handle();
  const kintsugi_operands operands = operands_of(call);
  std::optional<SavedMatrix> saved;
  if (must_redo_native) saved.emplace(call);
  const kintsugi_status status = kintsugi_plan_execute(handle.get(), decision.plan.get(), &operands);
  if (status != KINTSUGI_SUCCESS) return status;
  note_execution(handle.get(), outcome);
  if (!must_redo_native || !outcome.is_native()) return status;
  saved->restore();
  const kintsugi_status exact_status = library_gemm(handle.get(), call, "exact", "emulate");
  if (exact_status == KINTSUGI_SUCCESS) note_execution(handle.get(), outcome);
  return exact_status;
}

// Tells the user, under the policy `force`, that an emulation cannot run.
void report_failure_under_force(const Symbol& symbol, const std::string& message) {
  if (settings().policy != Policy::force) return;
  std::fprintf(stderr, "kintsugi: %s: policy force, but %s\n", symbol.name(), message.c_str());
  if (settings().strict) std::exit(2);
}

}  // namespace

bool multiply(const Symbol& symbol, const Call& call, const Forward& forward, CallOutcome& outcome) {
  const DecisionPointer decision = decide_and_note(symbol.name(), call);
  if (settings().records_calls() || settings().policy == Policy::force) outcome.why = decision->why;
  if (decision->emulates) {
    const kintsugi_status status = execute(*decision, call, outcome);
    if (status == KINTSUGI_SUCCESS) return true;
    outcome.failed = true;
    outcome.why = std::string(kintsugi_status_name(status)) + ": " + kintsugi_last_error();
    if (settings().asks_for_products() && settings().policy != Policy::force)
      drop_in::note_not_kept(settings(), symbol.name(), outcome.why);
  }
  report_failure_under_force(symbol, outcome.why);
  multiply_natively(symbol, call, forward);
  return decision->emulates;
}

void multiply_natively(const Symbol& symbol, const Call& call, const Forward& forward) {
  if (forward()) return;
  if (library_gemm(nullptr, call, nullptr, "native") != KINTSUGI_SUCCESS)
    std::fprintf(stderr, "kintsugi: %s: no BLAS, and no product of the library: %s\n", symbol.name(),
                 kintsugi_last_error());
}

namespace {

using FortranGemm = void(const char*, const char*, const std::int32_t*, const std::int32_t*,
                         const std::int32_t*, const void*, const void*, const std::int32_t*, const void*,
                         const std::int32_t*, const void*, void*, const std::int32_t*, std::size_t,
                         std::size_t);

FortranGemm* next_gemm(kintsugi_type type) {
  static constinit Symbol s("sgemm_", "SGEMM "), d("dgemm_", "DGEMM "), c("cgemm_", "CGEMM "),
      z("zgemm_", "ZGEMM ");
  switch (type) {
    case KINTSUGI_F32: return s.next<FortranGemm>();
    case KINTSUGI_F64: return d.next<FortranGemm>();
    case KINTSUGI_C32: return c.next<FortranGemm>();
    default: return z.next<FortranGemm>();
  }
}

const char* letter_of(Op op) { return op == Op::n ? "N" : op == Op::t ? "T" : "C"; }

}  // namespace

bool call_next_gemm(const Call& written) {
  const Call call = as_column_major(written);
  for (const std::int64_t size : {call.m, call.n, call.k, call.lda, call.ldb, call.ldc})
    if (size > std::numeric_limits<std::int32_t>::max()) return false;
  FortranGemm* const next = next_gemm(call.type);
  if (next == nullptr) return false;
  const auto m = static_cast<std::int32_t>(call.m), n = static_cast<std::int32_t>(call.n);
  const auto k = static_cast<std::int32_t>(call.k), lda = static_cast<std::int32_t>(call.lda);
  const auto ldb = static_cast<std::int32_t>(call.ldb), ldc = static_cast<std::int32_t>(call.ldc);
  next(letter_of(call.op_a), letter_of(call.op_b), &m, &n, &k, call.alpha, call.a, &lda, call.b, &ldb,
       call.beta, call.c, &ldc, 1, 1);
  return true;
}

}  // namespace kintsugi::blas
