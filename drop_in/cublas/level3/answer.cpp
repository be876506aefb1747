#include "answer.hpp"

#include <exception>
#include <string>
#include <string_view>

#include "common/accuracy.hpp"
#include "cublas/record/record.hpp"
#include "cublas/settings.hpp"
#include "steps.hpp"

namespace kintsugi::cublas {

namespace {

// cuBLAS's gemm routines, for products that are not emulated. The index is a kintsugi_type.
constinit Symbol real_products[] = {Symbol("cublasSgemm_v2_64"), Symbol("cublasDgemm_v2_64"),
                                    Symbol("cublasCgemm_v2_64"), Symbol("cublasZgemm_v2_64")};

// Returns the smallest order that a half may have. Under the policy auto, smaller halves do not pay off.
// Times measured on an H200, relative to cuBLAS: FP32 trsm with 8192 right sides 0.93 if an order of 2048 is
// halved, but 1.06 if an order of 1024 is halved; FP32 syrk 0.78 if an order of 4096 is halved, but 1.3 for
// 2048.
std::int64_t min_order(const RoutineCall& call) {
  constexpr std::int64_t min_if_asked_for = 32;
  constexpr std::int64_t min_gaining_in_solve = 1024;
  constexpr std::int64_t min_gaining_elsewhere = 2048;
  if (settings().policy != Policy::automatic) return min_if_asked_for;
  return call.is_solve() ? min_gaining_in_solve : min_gaining_elsewhere;
}

// True for FP64 trsm, for which cuBLAS spends most time in the diagonal blocks, which are not emulated. On an
// H200 with n = 8192, division gains at most 5 %; it costs 9 % if no emulation accepts the solution's ranges.
bool gains_too_little(const RoutineCall& call) {
  return settings().policy == Policy::automatic && call.is_solve() && !drop_in::is_single(call.type);
}

class RoutineAnswer {
 public:
  RoutineAnswer(const Symbol& symbol, Handle handle, const RoutineCall& call, const ForwardRoutine& forward)
      : symbol_(symbol), handle_(handle), call_(call), forward_(forward) {
    recorded_.op_a = call.op;
    recorded_.m = call.m;
    recorded_.n = call.n;
    recorded_.k = call.is_update() ? call.k : call.order();
  }

  int run() {
    if (const char* reason = reason_to_forward(call_)) return forward(reason);
    if (settings().is_malformed()) return forward(settings().malformed);
    if (settings().policy == Policy::native) return forward("policy native forwards every call");
    if (settings().sites) return forward("rules of call sites are for matrix products alone");
    if (call_.order() < 2 * min_order(call_)) return forward("the blocks beside the diagonal are too small");
    if (gains_too_little(call_)) return forward("equations of FP64 gain too little");
    const HandleOrigin origin(handle_);
    if (const char* reason = read_state(origin, state_)) return forward(reason);
    if (const char* reason = reason_in_scalars(call_, state_.pointer_mode)) return forward(reason);
    if (const char* reason = origin.reason_in_arithmetic(call_.type)) return forward(reason);
    const CallSample sample(symbol_.name(), recorded_, state_.stream);  // measures all steps below
    const StepScalars scalars(call_, state_.pointer_mode);
    Steps steps(state_, scalars, min_order(call_));
    try {
      steps.add(call_);
      note_decision(symbol_.name(), steps.first_decision());
      if (records_calls())
        outcome_ = {.candidates = steps.first_decision().candidates,
                    .why = steps.first_decision().why,
                    .failed = false};
    } catch (const std::exception&) {  // No memory; C is as it was.
      return forward_(call_);
    }
    const bool is_undivided = steps.all().size() == 1;
    return is_undivided ? forward(steps.first_decision().why) : run_steps(steps);
  }

 private:
  int run_steps(const Steps& steps) {
    for (const Step& step : steps.all()) {
      const int status = run_step(step);
      if (status != success) return status;
    }
    note(outcome_);
    return success;
  }

  // Enqueues a step. A product whose emulation fails is multiplied by cuBLAS.
  int run_step(const Step& step) {
    if (step.native) return forward_(*step.native);
    if (!step.emulates) return multiply_natively(step.product);
    try {
      const std::string failure = emulate(**step.decision, step.product, state_);
      if (failure.empty()) return success;
      note_failure(symbol_.name(), failure);
      if (records_calls()) outcome_ = {.candidates = "", .why = failure, .failed = true};
    } catch (const std::exception&) {  // No memory for the message; C is not written yet.
    }
    return multiply_natively(step.product);
  }

  int multiply_natively(const Call& product) const {
    return call_real(real_products[*product.type], handle_, product.op_a, product.op_b, product.m, product.n,
                     product.k, product.alpha, product.a, product.lda, product.b, product.ldb, product.beta,
                     product.c, product.ldc);
  }

  int forward(std::string_view why) const {
    if (records_calls()) note({.candidates = "", .why = std::string(why), .failed = false});
    return forward_(call_);
  }

  void note(const CallOutcome& outcome) const noexcept try {
    if (!records_calls()) return;
    record_call(symbol_.name(), recorded_, outcome);
  } catch (const std::exception&) {  // The record lacks the call.
  }

  const Symbol& symbol_;
  Handle handle_;
  const RoutineCall& call_;
  const ForwardRoutine& forward_;
  Call recorded_;  // the call as the record shows it: a product of the same sizes
  CallState state_;
  CallOutcome outcome_;
};

}  // namespace

int answer(const Symbol& symbol, Handle handle, const RoutineCall& call, const ForwardRoutine& forward) {
  const CallUnderWay under_way;
  RoutineAnswer routine(symbol, handle, call, forward);
  return routine.run();
}

}  // namespace kintsugi::cublas
