#include "decision.hpp"

#include <algorithm>
#include <cstddef>

#include "common/accuracy.hpp"
#include "common/documents.hpp"
#include "cublas/device/driver.hpp"
#include "cublas/device/workspace.hpp"
#include "mutexes.hpp"
#include "settings.hpp"

namespace kintsugi::cublas {

namespace {

// Everything that a plan depends on.
struct Key {
  kintsugi_type type;
  int op_a, op_b, pointer_mode, device;
  BatchKind batch;
  std::int64_t m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, count;

  bool operator==(const Key&) const = default;
};

Key key_of(const Call& call, const CallState& state) {
  return {*call.type,    call.op_a,     call.op_b,     state.pointer_mode, state.device, call.batch,
          call.m,        call.n,        call.k,        call.lda,           call.ldb,     call.ldc,
          call.stride_a, call.stride_b, call.stride_c, call.count};
}

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::size_t hash = static_cast<std::size_t>(key.type);
    for (const std::int64_t number :
         {std::int64_t{key.op_a}, std::int64_t{key.op_b}, std::int64_t{key.pointer_mode},
          std::int64_t{key.device}, static_cast<std::int64_t>(key.batch), key.m, key.n, key.k, key.lda,
          key.ldb, key.ldc, key.stride_a, key.stride_b, key.stride_c, key.count})
      hash = (hash ^ static_cast<std::size_t>(number)) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 32);
  }
};

kintsugi_problem problem_of(const Call& call, const CallState& state) {
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  problem.m = call.m;
  problem.n = call.n;
  problem.k = call.k;
  problem.lda = call.lda;
  problem.ldb = call.ldb;
  problem.ldc = call.ldc;
  problem.batch_count = call.count;
  problem.stride_a = call.stride_a;
  problem.stride_b = call.stride_b;
  problem.stride_c = call.stride_c;
  problem.op_a = call.op_a;
  problem.op_b = call.op_b;
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = *call.type;
  problem.pointer_mode = state.pointer_mode;
  problem.memory = KINTSUGI_DEVICE;
  problem.batch_kind = call.batch == BatchKind::pointers ? KINTSUGI_BATCH_POINTERS : KINTSUGI_BATCH_STRIDED;
  return problem;
}

// True for failures that need not last, such as one for want of memory.
bool may_pass(kintsugi_status status) {
  return status == KINTSUGI_OUT_OF_MEMORY || status == KINTSUGI_DEVICE_ERROR;
}

// Emulations of FP64 gain 5 % at k = 2048 on an H200 that has nothing else to do, and hold all of it while
// they run: cuSOLVER's Cholesky factorization, which overlaps its products with its panels, took 1.49 times
// as long at n = 32768. Settings that ask for more than `auto` are not touched.
bool gains_too_little(const Call& call) {
  constexpr std::int64_t min_side = 3072;
  const bool is_free =
      settings().policy == Policy::automatic && settings().scheme.empty() && settings().accuracy.empty();
  return is_free && !drop_in::is_single(*call.type) && std::min({call.m, call.n, call.k}) < min_side;
}

// A first plan makes a handle of cuBLAS, which allocates and would spoil a capture.
Decision new_decision(const Call& call, const CallState& state) {
  Decision decision;
  if (is_captured(state.stream)) {
    decision.why = "the stream is being captured, and the problem was not planned before";
    decision.is_final = false;
    return decision;
  }
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.queue = {KINTSUGI_QUEUE_CUDA, 0, state.stream};
  options.workspace_limit = workspace_limit(state.device);
  kintsugi_plan plan = nullptr;
  const kintsugi_status status =
      drop_in::make_fitting_plan(problem_of(call, state), options, settings().accuracy, &plan);
  if (status != KINTSUGI_SUCCESS) {
    decision.is_final = !may_pass(status);
    decision.why = std::string("no plan: ") + kintsugi_last_error();
    return decision;
  }
  decision.plan.reset(plan);
  const drop_in::PlanSummary summary = drop_in::summary_of(plan);
  decision.why = summary.why;
  decision.candidates = summary.candidates;
  // A native product under emulate is the library's own, in a fixed order; under auto it is cuBLAS's.
  decision.emulates = !summary.is_native || settings().policy != Policy::automatic;
  if (decision.emulates && gains_too_little(call)) {
    decision.emulates = false;
    decision.candidates.clear();
    decision.why = "FP64 products with a side below 3072 gain too little beside other work of the device";
  }
  if (!decision.emulates) decision.plan.reset();
  if (decision.emulates) kintsugi_plan_workspace_size(plan, &decision.workspace_bytes);
  return decision;
}

constinit drop_in::Kept<Key, Decision, KeyHash> decisions(decisions_mutex);

}  // namespace

Decided decide(const Call& call, const CallState& state) {
  const auto is_final = [](const Decision& decision) { return decision.is_final; };
  return decisions.get(
      key_of(call, state), [&] { return new_decision(call, state); }, is_final);
}

}  // namespace kintsugi::cublas
