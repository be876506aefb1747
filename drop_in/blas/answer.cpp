#include "answer.hpp"

#include <chrono>
#include <exception>

#include "core/settings.hpp"
#include "core/sites/site.hpp"
#include "level3/compose.hpp"

namespace kintsugi::blas {

namespace {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void record(const Symbol& symbol, const Call& call, const CallOutcome& outcome) {
  if (!records_calls()) return;
  try {
    record_call(symbol.name(), call, outcome);
  } catch (const std::exception&) {  // The record lacks the call.
  }
}

// Records which earlier results the call has read, and the matrix that it has written.
void note_matrices(const Call& call) {
  if (call.site == nullptr || !records_calls()) return;
  try {
    record_matrices(call, reads_c(call));
  } catch (const std::exception&) {  // The record lacks the call's matrices.
  }
}

// Makes the plan before the call is timed. Otherwise the recorded time of a site would contain planning.
void make_plan_before_timing(const Call& call) {
  if (!records_calls()) return;
  try {
    decide(largest_product(call));
  } catch (const std::exception&) {  // No memory: answer_checked() handles the same exception again.
  }
}

// ------------------------------------------------------------------ one call

// Everything in a call that its checks and its decision depend on. One cache line.
struct alignas(64) ForwardedProblem {
  std::int64_t m = -1, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;  // m = -1: no call was forwarded
  Routine routine = Routine::gemm;
  Layout layout = Layout::column_major;
  Side side = Side::left;
  Uplo uplo = Uplo::lower;
  Op op_a = Op::n, op_b = Op::n;
  Diag diag = Diag::non_unit;
  kintsugi_type type = KINTSUGI_F64;

  bool operator==(const ForwardedProblem&) const = default;
};

ForwardedProblem forwarded_problem(const Call& call) {
  return {call.m,      call.n,    call.k,    call.lda,  call.ldb,  call.ldc,  call.routine,
          call.layout, call.side, call.uplo, call.op_a, call.op_b, call.diag, call.type};
}

// The problem that the thread forwarded last. A call of the same problem is forwarded without checks and
// without a look-up, which would evict cache lines that a small product needs. It is set only where every
// later call of the problem is forwarded too: sites have decisions of their own, records count every call,
// `force` says each time why it forwards, and emulations return with the rounding mode.
__attribute__((tls_model("initial-exec"))) constinit thread_local ForwardedProblem last_forwarded = {};

void remember_forwarded(const Call& call) {
  if (has_sites() || records_calls() || settings().policy == Policy::force || rounding_mode() != 0) return;
  last_forwarded = forwarded_problem(call);
}

// A call with m = -1 is wrong, so it was never forwarded.
bool was_forwarded(const Call& call) { return call.m >= 0 && last_forwarded == forwarded_problem(call); }

// Decides on a routine of several products by its largest product.
void answer_as_decided(const Symbol& symbol, const Call& call, const Forward& forward, CallOutcome& outcome) {
  if (call.routine == Routine::gemm) {
    if (!multiply(symbol, call, forward, outcome)) remember_forwarded(call);
    return;
  }
  const DecisionPointer decision = decide(largest_product(call));
  if (records_calls()) outcome.why = decision->why;
  if (settings().policy != Policy::force) {  // else each product notes its decision
    note_decision(symbol.name(), *decision);
    if (!decision->emulates && forward()) return remember_forwarded(call);
  }
  Products products(symbol, call.site, outcome);
  compose(call, products);
}

// True for routines with vectors that the settings leave to the next BLAS. dsdot has the type of its result.
bool is_left_to_next(const Call& call) {
  if (!has_vectors(call.routine)) return false;
  return !settings().answers_vectors(call.routine == Routine::dsdot ? KINTSUGI_F64 : call.type);
}

// Answers a call whose emulation has failed before C was written.
void answer_natively(const Symbol& symbol, const Call& call, const Forward& forward) {
  if (call.routine == Routine::gemm) return multiply_natively(symbol, call, forward);
  if (!forward()) print_line({symbol.name(), ": out of memory, and no BLAS has it"});
}

void answer_unrecorded(const Symbol& symbol, const Call& call, const Forward& forward, CallOutcome& outcome) {
  try {
    answer_as_decided(symbol, call, forward, outcome);
  } catch (const std::exception&) {  // No memory. multiply() and compose() throw only before C is written.
    answer_natively(symbol, call, forward);
  }
}

// Reads the clock only if calls are recorded. Two readings take 50 ns in a virtual machine, as long as the
// rest of this library's work on a forwarded call.
}  // namespace

void answer_checked(const Symbol& symbol, const Call& call, const Forward& forward) {
  CallOutcome outcome;
  if (!records_calls()) return answer_unrecorded(symbol, call, forward, outcome);
  std::optional<ExactComparison> comparison = ExactComparison::begin(symbol, call);
  const Stopwatch stopwatch;
  answer_unrecorded(symbol, call, forward, outcome);
  outcome.seconds = stopwatch.seconds();
  record(symbol, call, outcome);
  note_matrices(call);
  if (comparison) comparison->finish(outcome.program);
}

namespace {

// As answer_vectors(), but without memory for vectors the next BLAS answers.
void answer_vectors_or_forward(const Symbol& symbol, const Call& call, const Forward& forward) {
  try {
    answer_vectors(symbol, call, forward);
  } catch (const std::exception&) {  // No memory; nothing is written yet.
    answer_natively(symbol, call, forward);
  }
}

// ------------------------------------------------------------------ batches

// Forwards a call whose site has the rule `native`, without checks or records. Returns false if the call must
// be answered here.
bool forward_native_site(const Site* site, const Forward& forward) {
  return site != nullptr && site->rule.is_native() && !records_calls() && forward();
}

bool emulates_any(const Symbol& symbol, const std::vector<Group>& groups) noexcept try {
  if (settings().policy == Policy::force) return !groups.empty();
  for (const Group& group : groups) {
    const DecisionPointer decision = decide(group.product);
    note_decision(symbol.name(), *decision);
    if (decision->emulates) return true;
  }
  return false;
} catch (const std::exception&) {  // No memory for a decision.
  return false;
}

double multiplications(const Group& group) {
  double all = static_cast<double>(group.count);
  for (const std::int64_t size : {group.product.m, group.product.n, group.product.k})
    all *= static_cast<double>(size);
  return all;
}

// The first product of a group whose error is measured.
struct FirstProduct {
  Call call;
  std::optional<ExactComparison> comparison;
};

// Begins to measure the first product of each group of a forwarded batch.
std::vector<FirstProduct> first_products(const Symbol& symbol, const std::vector<Group>& groups) noexcept
    try {
  std::vector<FirstProduct> measured(groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].count == 0) continue;
    measured[i].call = groups[i].item(0);
    measured[i].comparison = ExactComparison::begin(symbol, measured[i].call);
  }
  return measured;
} catch (const std::exception&) {  // No memory: no error is measured.
  return {};
}

// Records a forwarded batch. Each group gets a share of the time in proportion to its multiplications.
void record_forwarded(const Symbol& symbol, const std::vector<Group>& groups, double seconds) noexcept try {
  if (!records_calls()) return;
  double all = 0;
  for (const Group& group : groups) all += multiplications(group);
  for (const Group& group : groups) {
    if (group.count == 0) continue;
    CallOutcome outcome;
    outcome.why = decide(group.product)->why;
    outcome.calls = group.count;
    outcome.seconds = all > 0 ? seconds * multiplications(group) / all : 0;
    record(symbol, group.product, outcome);
    for (std::int64_t index = 0; index < group.count; ++index) note_matrices(group.item(index));
  }
} catch (const std::exception&) {  // The record lacks the batch.
}

// Forwards the whole batch, and measures the error of each group's first product. Returns false if the next
// BLAS lacks the routine.
bool forward_batch(const Symbol& symbol, const std::vector<Group>& groups, const Forward& forward) {
  std::vector<FirstProduct> measured = first_products(symbol, groups);
  const Stopwatch stopwatch;
  if (!forward()) return false;
  record_forwarded(symbol, groups, stopwatch.seconds());
  for (FirstProduct& first : measured)
    if (first.comparison) first.comparison->finish("");
  return true;
}

}  // namespace

Call Group::item(std::int64_t index) const {
  Call call = product;
  const auto advanced = [index](auto* data, std::int64_t stride) {
    return data == nullptr ? nullptr : static_cast<const char*>(data) + index * stride;
  };
  call.a = a != nullptr ? a[index] : advanced(product.a, stride_a);
  call.b = b != nullptr ? b[index] : advanced(product.b, stride_b);
  call.c = c != nullptr ? c[index] : const_cast<char*>(advanced(product.c, stride_c));
  return call;
}

bool Batch::add(const Group& group) noexcept try {
  groups.push_back(group);
  return true;
} catch (const std::exception&) {
  is_complete = false;
  return false;
}

void answer(const Invocation& invocation, const Call& call, Forward forward) {
  const CallUnderWay under_way;
  if (was_forwarded(call) && forward()) return;
  if (is_left_to_next(call) && forward()) return;
  call_threads = next_threads(invocation.symbol);
  const void* const compiled_site = take_announced_site();
  const Site* const site = has_sites() ? site_of(invocation.return_address, compiled_site) : nullptr;
  if (forward_native_site(site, forward)) return;
  const Symbol& symbol = invocation.symbol;
  if (has_conjugate_only_op(call) && forward()) return;
  if (const BadArgument bad = first_bad_argument(call, invocation.enumerators); bad.number != 0)
    return report_bad_argument(invocation, call.layout, bad);
  if (has_vectors(call.routine)) return answer_vectors_or_forward(symbol, call, forward);
  if (!has_sites()) return answer_checked(symbol, call, forward);
  Call located = call;
  located.site = site;
  make_plan_before_timing(located);
  answer_checked(symbol, located, forward);
}

void answer(const Invocation& invocation, Batch batch, Forward forward) {
  const CallUnderWay under_way;
  call_threads = next_threads(invocation.symbol);
  const void* const compiled_site = take_announced_site();
  const Symbol& symbol = invocation.symbol;
  for (const Group& group : batch.groups)
    if (has_conjugate_only_op(group.product) && forward()) return;
  if (batch.bad.number != 0) return report_bad_argument(invocation, batch.layout, batch.bad);
  if (!batch.is_complete) {
    if (!forward()) print_line({symbol.name(), ": out of memory, and no BLAS has it"});
    return;
  }
  if (has_sites()) {
    const Site* const site = site_of(invocation.return_address, compiled_site);
    for (Group& group : batch.groups) group.product.site = site;
  }
  if (!emulates_any(symbol, batch.groups) && forward_batch(symbol, batch.groups, forward)) return;
  for (const Group& group : batch.groups) {
    for (std::int64_t index = 0; index < group.count; ++index) {
      const Call item = group.item(index);
      answer_checked(symbol, item, Forward([&item] { return call_next_gemm(item); }));
    }
  }
}

}  // namespace kintsugi::blas
