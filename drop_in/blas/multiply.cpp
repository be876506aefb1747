#include "multiply.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>

#include "check.hpp"
#include "decision.hpp"
#include "documents.hpp"
#include "record.hpp"
#include "saved_matrix.hpp"
#include "settings.hpp"

namespace kintsugi::blas {

namespace {

// Calls of this library that the thread is in: what the library's own OpenBLAS, or the next BLAS, calls by
// name comes back here.
constinit thread_local int calls_under_way = 0;

class CallUnderWay {
 public:
  CallUnderWay() { ++calls_under_way; }
  ~CallUnderWay() { --calls_under_way; }
  CallUnderWay(const CallUnderWay&) = delete;
  CallUnderWay& operator=(const CallUnderWay&) = delete;
};

struct HandleDeleter {
  void operator()(kintsugi_handle handle) const { kintsugi_destroy(handle); }
};
using Handle = std::unique_ptr<kintsugi_handle_s, HandleDeleter>;

Handle new_handle() {
  kintsugi_handle handle = nullptr;
  return Handle(kintsugi_create(&handle) == KINTSUGI_SUCCESS ? handle : nullptr);
}

kintsugi_operands operands_of(const GemmCall& call) {
  kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
  operands.alpha = call.alpha;
  operands.a = call.a;
  operands.b = call.b;
  operands.beta = call.beta;
  operands.c = call.c;
  return operands;
}

// The library's product under an accuracy and a policy of the call's own.
kintsugi_status library_gemm(kintsugi_handle handle, const GemmCall& call, const char* accuracy,
                             const char* policy) {
  const kintsugi_problem problem = problem_of(call);
  const kintsugi_operands operands = operands_of(call);
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.accuracy = accuracy;
  options.policy = policy;
  return kintsugi_gemm(handle, &problem, &options, &operands);
}

// C is written: nothing that goes wrong from here on may compute it again.
void note_execution(kintsugi_handle handle, CallOutcome& outcome) noexcept try {
  if (handle == nullptr) return;
  const ExecutionSummary summary = summary_of(handle);
  outcome.program = summary.program == "native" ? "" : summary.program;
  outcome.only_scaled = summary.program.empty();
  outcome.recomputed_elements = summary.recomputed_elements;
  outcome.has_special_values = summary.has_special_values;
} catch (const std::exception&) {  // The record lacks the call's counts.
}

// Under the policy force a native product is not accepted: C is put back and computed exactly.
kintsugi_status execute(const Decision& decision, const GemmCall& call, CallOutcome& outcome) {
  const bool excludes_native = settings().policy == Policy::force && decision.may_be_native;
  const Handle handle = excludes_native || settings().is_recorded() ? new_handle() : Handle();
  const kintsugi_operands operands = operands_of(call);
  std::optional<SavedMatrix> saved;
  if (excludes_native) saved.emplace(call);
  const kintsugi_status status = kintsugi_plan_execute(handle.get(), decision.plan.get(), &operands);
  if (status != KINTSUGI_SUCCESS) return status;
  note_execution(handle.get(), outcome);
  const bool was_native = outcome.program.empty() && !outcome.only_scaled;
  if (!excludes_native || !was_native) return status;
  saved->restore();
  const kintsugi_status exactly = library_gemm(handle.get(), call, "exact", "emulate");
  if (exactly == KINTSUGI_SUCCESS) note_execution(handle.get(), outcome);
  return exactly;
}

// A forced emulation that cannot run must not pass unnoticed.
void note_failure(const Symbol& symbol, const std::string& message) {
  if (settings().policy != Policy::force) return;
  std::fprintf(stderr, "kintsugi: %s: policy force, but %s\n", symbol.name(), message.c_str());
  if (settings().strict) std::exit(2);
}

// The next BLAS; where there is none behind this name, the library's native product.
void multiply_natively(const GemmCall& call, const Forward& forward) {
  if (!forward()) library_gemm(nullptr, call, nullptr, "native");
}

void multiply_as_decided(const Symbol& symbol, const GemmCall& call, const Forward& forward,
                         CallOutcome& outcome) {
  const Decided decision = decide(call);
  if (settings().is_recorded() || settings().policy == Policy::force) outcome.why = decision->why;
  if (decision->emulates) {
    const kintsugi_status status = execute(*decision, call, outcome);
    if (status == KINTSUGI_SUCCESS) return;
    outcome.failed = true;
    outcome.why = std::string(kintsugi_status_name(status)) + ": " + kintsugi_last_error();
  }
  if (outcome.failed || settings().policy == Policy::force) note_failure(symbol, outcome.why);
  multiply_natively(call, forward);
}

void multiply_recorded(const Symbol& symbol, const GemmCall& call, const Forward& forward) {
  CallOutcome outcome;
  const auto start = std::chrono::steady_clock::now();
  multiply_as_decided(symbol, call, forward, outcome);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  try {
    record_call(symbol.name(), call, outcome);
  } catch (const std::exception&) {  // The record lacks the call.
  }
}

}  // namespace

bool intercepts() { return calls_under_way == 0 && !settings().forwards_all(); }

void multiply(const Symbol& symbol, const GemmCall& call, Forward forward) {
  const CallUnderWay under_way;
  if (has_extension(call) && forward()) return;
  if (const BadArgument bad = first_bad_argument(call); bad.number != 0)
    return report_bad_argument(symbol.routine(), call, bad);
  try {
    if (settings().is_recorded()) return multiply_recorded(symbol, call, forward);
    CallOutcome outcome;
    multiply_as_decided(symbol, call, forward, outcome);
  } catch (const std::exception&) {  // No memory for a small object; C is as it was.
    multiply_natively(call, forward);
  }
}

}  // namespace kintsugi::blas
