// Products: decided, then emulated or native; and their exact counterparts, by which errors are measured.
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>

#include "answer.hpp"
#include "core/intercept.hpp"
#include "core/lock.hpp"
#include "core/settings.hpp"
#include "core/sites/site.hpp"
#include "level3/compose.hpp"

namespace kintsugi::blas {

namespace {

constinit Kept<ProblemKey, Decision, ProblemKeyHash> decisions(decisions_mutex);

struct HandleDeleter {
  void operator()(kintsugi_handle handle) const { kintsugi_destroy(handle); }
};
using Handle = std::unique_ptr<kintsugi_handle_s, HandleDeleter>;

Handle new_handle() {
  kintsugi_handle handle = nullptr;
  return Handle(kintsugi_create(&handle) == KINTSUGI_SUCCESS ? handle : nullptr);
}

// Returns the option: what the program lets the next BLAS use, unless a setting has a number.
int threads_of_call() {
  if (call_threads == 0 || settings().sets_threads) return 0;
  return std::min(call_threads, kintsugi_set_threads(-1));
}

kintsugi_status library_gemm(kintsugi_handle handle, const Call& call, const char* accuracy,
                             const char* policy) {
  const kintsugi_problem problem = problem_of(call);
  const kintsugi_operands operands = operands_of(call);
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.accuracy = accuracy;
  options.policy = policy;
  options.threads = threads_of_call();
  return kintsugi_gemm(handle, &problem, &options, &operands);
}

// Computes a product by Kintsugi's native product, which needs no memory: without room for a buffer, as under
// RLIMIT_AS, OpenBLAS ends the program or never returns.
bool multiply_with_little_memory(const Call& call) {
  return library_gemm(nullptr, call, own_accuracy(call.type), "native") == KINTSUGI_SUCCESS;
}

// Copies the summary of the handle's last execution to the outcome. Does not throw: the caller would take an
// exception as a failure before C was written, and compute C twice.
void note_execution(kintsugi_handle handle, CallOutcome& outcome) noexcept try {
  kintsugi_report_summary summary = KINTSUGI_REPORT_SUMMARY_INIT;
  if (handle == nullptr || kintsugi_report_summarize(handle, &summary) != KINTSUGI_SUCCESS) return;
  const std::string_view scheme = summary.scheme;
  // The scheme is "native" for a native product, and "" if nothing was multiplied. outcome.program is "" in
  // both cases, and outcome.only_scaled tells them apart.
  outcome.program = scheme == "native" ? "" : scheme;
  outcome.only_scaled = scheme.empty();
  outcome.recomputed_elements = summary.recomputed_elements;
  outcome.has_special_values = summary.items_with_special_values != 0;
  outcome.is_offloaded = summary.offload_devices != 0;
  const std::string_view obstacle = summary.offload_obstacle;
  if (obstacle.empty()) return;
  outcome.offload_failed = true;
  outcome.why = "Offload failed, so the host multiplied: ";
  outcome.why += obstacle;
} catch (const std::exception&) {  // No memory: the record has no counts for this call.
}

// Executes the plan. If the product was native under the policy `force`, restores C and computes it again
// with the accuracy `exact`, which is always emulated.
kintsugi_status execute(const Decision& decision, const Call& call, CallOutcome& outcome) {
  const bool must_redo_native = settings().policy == Policy::force && decision.may_be_native;
  const Handle handle = must_redo_native || records_calls() ? new_handle() : Handle();
  const kintsugi_operands operands = operands_of(call);
  const Region c = must_redo_native ? output_of(call) : Region();
  const std::vector<char> saved = packed(c);
  const kintsugi_status status = kintsugi_plan_execute(handle.get(), decision.plan.get(), &operands);
  if (status != KINTSUGI_SUCCESS) return status;
  note_execution(handle.get(), outcome);
  if (!must_redo_native || !outcome.is_native()) return status;
  unpack(saved, c);
  const kintsugi_status exact_status = library_gemm(handle.get(), call, "exact", "emulate");
  if (exact_status == KINTSUGI_SUCCESS) note_execution(handle.get(), outcome);
  return exact_status;
}

}  // namespace

DecisionPointer decide(const Call& call) {
  const auto is_final = [](const Decision& decision) { return decision.is_final; };
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.threads = threads_of_call();
  const auto make = [&] { return new_decision(call, problem_of(call), options); };
  return decisions.get(problem_key(call, options.threads), make, is_final);
}

bool multiply(const Symbol& symbol, const Call& call, const Forward& forward, CallOutcome& outcome) {
  const DecisionPointer decision = decide(call);
  note_decision(symbol.name(), *decision);
  if (records_calls()) outcome.why = decision->why;
  if (decision->emulates) {
    const kintsugi_status status = execute(*decision, call, outcome);
    if (status == KINTSUGI_SUCCESS) return true;
    outcome.failed = true;
    outcome.why = std::string(kintsugi_status_name(status)) + ": " + kintsugi_last_error();
    note_failure(symbol.name(), outcome.why);
    if (status == KINTSUGI_OUT_OF_MEMORY && multiply_with_little_memory(call)) return true;
  }
  multiply_natively(symbol, call, forward);
  return decision->emulates;
}

void multiply_natively(const Symbol& symbol, const Call& call, const Forward& forward) {
  if (forward()) return;
  // The type's own accuracy, since a native product is not proved for a stricter one of the settings.
  if (library_gemm(nullptr, call, own_accuracy(call.type), "native") != KINTSUGI_SUCCESS)
    print_line({symbol.name(), ": no BLAS, and no product of the library: ", kintsugi_last_error()});
}

// ------------------------------------------------------------------ errors

namespace {

// Elements of a line of C that the call writes: all, or those of a triangle.
struct Part {
  std::int64_t begin, end;
};
Part written_part(const Call& column_major, std::int64_t line) {
  if (!writes_triangle(column_major.routine)) return {0, column_major.m};
  return column_major.uplo == Uplo::upper ? Part{0, line + 1} : Part{line, column_major.m};
}

}  // namespace

std::optional<ExactComparison> ExactComparison::begin(const Symbol& symbol, const Call& call) noexcept try {
  if (!records_calls() || call.routine == Routine::trsm || output_of(call).is_empty()) return std::nullopt;
  const SampleNumbers numbers = numbers_of_sample(symbol.name(), call);
  if (!numbers.is_measured()) return std::nullopt;
  return ExactComparison(symbol, call, numbers);
} catch (const std::exception&) {  // No memory.
  return std::nullopt;
}

ExactComparison::ExactComparison(const Symbol& symbol, const Call& call, const SampleNumbers& numbers)
    : symbol_(&symbol), call_(&call), numbers_(numbers), c_(packed(output_of(call))) {
  if (settings().dump && call.routine == Routine::gemm && reads_c(call)) c_read_ = c_;
}

bool ExactComparison::compute_exactly() {
  Call exact = *call_;
  exact.site = exact_site();
  exact.c = c_.data();
  exact.ldc = call_->layout == Layout::row_major ? call_->n : call_->m;
  bool has_failed = false;
  const auto forward = [&has_failed] { return has_failed = true; };
  CallOutcome outcome;
  if (exact.routine == Routine::gemm) {
    multiply(*symbol_, exact, Forward(forward), outcome);
  } else {
    Products products(*symbol_, exact.site, outcome);
    compose(exact, products);
  }
  return !has_failed && !outcome.failed && !outcome.is_native();
}

void ExactComparison::dump(std::string_view program, double error) {
  const Call column_major = as_column_major(*call_);
  const std::vector<Region> inputs = inputs_of(*call_, false);
  if (inputs.empty()) return;  // k = 0: there is no product
  write_dump(*settings().dump, column_major,
             {.symbol = symbol_->name(),
              .program = program,
              .is_transposed = call_->layout == Layout::row_major,
              .error = error,
              .alpha = call_->alpha,
              .beta = call_->beta,
              .a = packed(inputs[0]),
              .b = packed(inputs[1]),
              .c = std::move(c_read_),
              .result = packed(output_of(*call_)),
              .exact = std::move(c_)});
}

void ExactComparison::finish(std::string_view program) noexcept try {
  if (!compute_exactly()) return;
  const Call column_major = as_column_major(*call_);
  const Region c = output_of(*call_);
  const std::int64_t bytes = element_bytes(call_->type);
  CallNorms norms;
  for (std::int64_t line = 0; line < c.lines; ++line) {
    const Part part = written_part(column_major, line);
    add_elements(norms, call_->type, c.first + line * c.stride + part.begin * bytes,
                 c_.data() + line * c.line_bytes + part.begin * bytes, part.end - part.begin);
  }
  record_error(symbol_->name(), *call_, numbers_, norms);
  const double error = relative_error(norms);
  if (settings().dump && call_->routine == Routine::gemm && error > settings().dump->limit)
    dump(program, error);
} catch (const std::exception&) {  // No memory: the site lacks this call's error.
}

}  // namespace kintsugi::blas
