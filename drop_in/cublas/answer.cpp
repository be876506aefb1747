#include "answer.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "device/driver.hpp"
#include "device/workspace.hpp"
#include "record/record.hpp"
#include "settings.hpp"
#include "sites/exact_comparison.hpp"
#include "sites/site.hpp"

namespace kintsugi::cublas {

namespace {

// Depth of nested calls of this library in the thread. Nested calls come from the real cuBLAS, which calls
// routines by exported name.
constinit thread_local int calls_under_way = 0;

// Getters of the real cuBLAS.
constinit Symbol get_stream("cublasGetStream_v2");
constinit Symbol get_pointer_mode("cublasGetPointerMode_v2");
constinit Symbol get_math_mode("cublasGetMathMode");

// One intercepted call. Each member function answers it in one way and records the reason.
class Answer {
 public:
  Answer(const Symbol& symbol, const Origin& origin, const Call& call, const Forward& forward)
      : symbol_(symbol), origin_(origin), call_(call), forward_(forward) {
    call_.site = current_site();
  }

  int run() {
    if (!call_.type) return forward(records_calls() ? reason_of(call_.unsupported) : "");
    if (const char* reason = reason_to_forward(call_)) return forward(reason);
    if (settings().is_malformed()) return forward(settings().malformed);
    if (settings().policy == Policy::native && call_.site == nullptr) return forward_by_policy();
    if (const char* reason = read_state(origin_, state_)) return forward(reason);
    reads_c_ = state_.pointer_mode != KINTSUGI_SCALARS_ON_HOST || !is_zero(call_.beta, *call_.type);
    const ExactComparison comparison(origin_, call_, state_);
    const DecisionPointer decision = decide(call_, state_);
    note_decision(symbol_.name(), *decision);
    const int status = answer_as_decided(*decision);
    comparison.finish(status);
    return status;
  }

 private:
  int answer_as_decided(const Decision& decision) const {
    if (!decision.emulates) return forward_as_planned(decision);
    if (const char* reason = origin_.reason_in_arithmetic(*call_.type)) return forward(reason);
    if (const char* reason = origin_.enqueue_before(state_)) return forward(reason);
    return emulate(decision);
  }

  int emulate(const Decision& decision) const {
    CallSample sample(symbol_.name(), call_, state_.stream);
    const std::string failure = cublas::emulate(decision, call_, state_, sample.handle());
    if (!failure.empty()) return forward_after_failure(failure);
    if (const char* reason = origin_.enqueue_after(state_)) return forward_after_failure(reason);
    sample.note_execution();
    if (records_calls()) note({.candidates = decision.candidates, .why = decision.why, .failed = false});
    return success;
  }

  // Forwards the call; if calls are recorded, measures the time of a sampled one.
  int forward_by_policy() {
    constexpr std::string_view why = "policy native forwards every call";
    if (!records_calls() || read_state(origin_, state_) != nullptr) return forward(why);
    const CallSample sample(symbol_.name(), call_, state_.stream);
    return forward(why);
  }

  // Forwards the call because the decision says so, and measures its time if it is sampled. A decision
  // without candidates means that no plan could be made, which the policy `force` treats as a failure.
  int forward_as_planned(const Decision& decision) const {
    if (decision.candidates.empty() && settings().policy == Policy::force)
      return forward_failed(decision.why);
    const CallSample sample(symbol_.name(), call_, state_.stream);
    return forward(decision.why);
  }

  // Forwards the call after its emulation has failed.
  int forward_after_failure(const std::string& why) const {
    note_failure(symbol_.name(), why);
    return forward_failed(why);
  }

  int forward_failed(const std::string& why) const {
    if (records_calls()) note({.candidates = "", .why = why, .failed = true});
    return forward_();
  }

  int forward(std::string_view why) const {
    if (records_calls()) note({.candidates = "", .why = std::string(why), .failed = false});
    return forward_();
  }

  void note(CallOutcome outcome) const noexcept try {
    outcome.reads_c = reads_c_;
    record_call(symbol_.name(), call_, outcome);
  } catch (const std::exception&) {  // The record lacks the call.
  }

  const Symbol& symbol_;
  const Origin& origin_;
  Call call_;
  const Forward& forward_;
  CallState state_;
  bool reads_c_ = true;  // beta is not known to be 0
};

}  // namespace

const char* HandleOrigin::read(CallState& state) const {
  const bool is_known = call_real(get_pointer_mode, handle_, &state.pointer_mode) == success &&
                        call_real(get_stream, handle_, &state.stream) == success;
  return is_known ? nullptr : "cuBLAS does not know the handle";
}

const char* HandleOrigin::reason_in_arithmetic(kintsugi_type type) const {
  int math_mode = 0;
  if (call_real(get_math_mode, handle_, &math_mode) != success) return "cuBLAS does not tell the math mode";
  return reason_in_math_mode(math_mode, type);
}

CallUnderWay::CallUnderWay() { ++calls_under_way; }
CallUnderWay::~CallUnderWay() { --calls_under_way; }

const char* read_state(const Origin& origin, CallState& state) {
  if (const char* reason = origin.read(state)) return reason;
  const std::optional<int> device = current_device();
  if (!device) return "no context of the CUDA driver is current";
  state.device = *device;
  return nullptr;
}

std::string emulate(const Decision& decision, const Call& call, const CallState& state,
                    kintsugi_handle handle) {
  // Under a capture the drop-in passes no workspace. The library then allocates it for the graph, within the
  // plan's limit, which holds for all graphs together; beyond it the call fails and is forwarded.
  const bool captured = is_captured(state.stream);
  if (captured && *decision.forwards_captured)
    return "an earlier graph with this problem has it from cuBLAS, and captured calls keep their kernels";
  const std::size_t bytes = captured ? 0 : decision.workspace_bytes;
  const Workspace workspace(state.device, bytes, state.stream);
  kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
  operands.alpha = call.alpha;
  operands.a = call.a;
  operands.b = call.b;
  operands.beta = call.beta;
  operands.c = call.c;
  operands.queue = {KINTSUGI_QUEUE_CUDA, 0, state.stream};
  operands.workspace = workspace.pointer();
  operands.workspace_size = workspace.bytes();
  const kintsugi_status status = kintsugi_plan_execute(handle, decision.plan.get(), &operands);
  if (status == KINTSUGI_SUCCESS) return {};
  if (captured && status == KINTSUGI_OUT_OF_MEMORY) *decision.forwards_captured = true;
  return std::string(kintsugi_status_name(status)) + ": " + kintsugi_last_error();
}

void note_failure(const char* symbol, const std::string& why) {
  if (!settings().asks_for_products()) return;
  if (settings().policy != Policy::force) return drop_in::note_not_kept(settings(), symbol, why);
  std::fprintf(stderr, "kintsugi: %s: policy force, but %s\n", symbol, why.c_str());
  if (settings().strict) std::exit(2);
}

void note_decision(const char* symbol, const Decision& decision) {
  const bool lacks_a_plan = !decision.emulates && decision.candidates.empty();
  if (lacks_a_plan && settings().policy == Policy::force) return note_failure(symbol, decision.why);
  if (!decision.not_kept.empty()) drop_in::note_not_kept(settings(), symbol, decision.not_kept);
}

bool intercepts() {
  if (calls_under_way != 0) return false;
  if (settings().is_malformed()) return records_calls();
  if (settings().sites && !records_calls()) {
    const Site* const site = current_site();
    return site == nullptr || !site->rule.is_native();
  }
  return settings().policy != Policy::native || records_calls() || settings().sites.has_value();
}

int answer(const Symbol& symbol, Handle handle, const Call& call, const Forward& forward) {
  return answer(symbol, HandleOrigin(handle), call, forward);
}

int answer(const Symbol& symbol, const Origin& origin, const Call& call, const Forward& forward) {
  const CallUnderWay under_way;
  try {
    return Answer(symbol, origin, call, forward).run();
  } catch (const std::exception&) {  // No memory; C is not written yet.
    return forward();
  }
}

}  // namespace kintsugi::cublas
