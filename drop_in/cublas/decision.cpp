#include "decision.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "common/accuracy.hpp"
#include "common/documents.hpp"
#include "cublas/device/driver.hpp"
#include "cublas/device/workspace.hpp"
#include "mutexes.hpp"
#include "settings.hpp"
#include "sites/site.hpp"

namespace kintsugi::cublas {

namespace {

// Everything that a plan depends on.
struct Key {
  kintsugi_type type;
  int op_a, op_b, pointer_mode, device;
  BatchKind batch;
  std::int64_t m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, count;
  const Site* site;

  bool operator==(const Key&) const = default;
};

Key key_of(const Call& call, const CallState& state) {
  return {.type = *call.type,
          .op_a = call.op_a,
          .op_b = call.op_b,
          .pointer_mode = state.pointer_mode,
          .device = state.device,
          .batch = call.batch,
          .m = call.m,
          .n = call.n,
          .k = call.k,
          .lda = call.lda,
          .ldb = call.ldb,
          .ldc = call.ldc,
          .stride_a = call.stride_a,
          .stride_b = call.stride_b,
          .stride_c = call.stride_c,
          .count = call.count,
          .site = call.site};
}

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::size_t hash = static_cast<std::size_t>(key.type);
    for (const std::int64_t number :
         {std::int64_t{key.op_a}, std::int64_t{key.op_b}, std::int64_t{key.pointer_mode},
          std::int64_t{key.device}, static_cast<std::int64_t>(key.batch), key.m, key.n, key.k, key.lda,
          key.ldb, key.ldc, key.stride_a, key.stride_b, key.stride_c, key.count})
      hash = (hash ^ static_cast<std::size_t>(number)) * 0x9e3779b97f4a7c15u;
    hash ^= reinterpret_cast<std::uintptr_t>(key.site) >> 4;
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

// True for failures that may not recur, such as a lack of memory.
bool is_temporary(kintsugi_status status) {
  return status == KINTSUGI_OUT_OF_MEMORY || status == KINTSUGI_DEVICE_ERROR;
}

// True for FP64 products if no setting and no rule of the sites file asks for emulation. Then speed alone
// decides.
bool is_fp64_by_default(const Call& call) {
  return call.site == nullptr && settings().policy == Policy::automatic && settings().scheme.empty() &&
         settings().accuracy.empty() && !drop_in::is_single(*call.type);
}

// True for FP64 products that are too small to gain while other work runs on the device. An emulation
// occupies all SMs. At k = 2048 it gains 5 % on an idle H200, but cuSOLVER's Cholesky factorization (n =
// 32768), which overlaps products with other kernels, took 1.49 times as long.
bool gains_too_little(const Call& call) {
  constexpr std::int64_t min_side = 3072;
  return is_fp64_by_default(call) && std::min({call.m, call.n, call.k}) < min_side;
}

// Makes a plan by the rule of the call's site; by the settings if the call has no site.
kintsugi_status make_plan(const Call& call, const CallState& state, kintsugi_options options,
                          kintsugi_plan* plan) {
  const kintsugi_problem problem = problem_of(call, state);
  if (call.site == nullptr) return drop_in::make_fitting_plan(problem, options, settings().accuracy, plan);
  const auto null_if_empty = [](const std::string& value) { return value.empty() ? nullptr : value.c_str(); };
  options.scheme = null_if_empty(call.site->rule.scheme);
  options.accuracy = null_if_empty(call.site->rule.accuracy);
  options.policy = null_if_empty(call.site->rule.policy);
  return kintsugi_plan_create(nullptr, &problem, &options, plan);
}

// True if cuBLAS computes native products; false if Kintsugi computes them, in a fixed order.
bool leaves_native_to_cublas(const Call& call) {
  // Calls without a site are forwarded without a decision under the policy native.
  if (call.site == nullptr) return settings().policy == Policy::automatic;
  const drop_in::SiteRule& rule = call.site->rule;
  if (!rule.scheme.empty()) return false;
  if (!rule.policy.empty()) return rule.policy == "auto";
  return settings().policy == Policy::automatic || settings().policy == Policy::native;
}

// Decides by a new plan. While the stream is captured no plan is made, since the first plan creates a handle
// of cuBLAS, which allocates memory.
Decision new_decision(const Call& call, const CallState& state) {
  Decision decision;
  if (call.site != nullptr && call.site->rule.is_native()) {
    decision.why =
        call.site->has_rule ? "the sites file has native" : "the sites file does not name the call site";
    return decision;
  }
  if (is_captured(state.stream)) {
    decision.why = "the stream is being captured, and the problem was not planned before";
    decision.is_final = false;
    return decision;
  }
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.queue = {KINTSUGI_QUEUE_CUDA, 0, state.stream};
  options.workspace_limit = workspace_limit(state.device);
  kintsugi_plan plan = nullptr;
  const kintsugi_status status = make_plan(call, state, options, &plan);
  if (status != KINTSUGI_SUCCESS) {
    decision.is_final = !is_temporary(status);
    decision.why = std::string("no plan: ") + kintsugi_last_error();
    if (call.site != nullptr) note_failure(*call.site, decision.why);
    return decision;
  }
  decision.plan.reset(plan);
  const drop_in::PlanSummary summary = drop_in::summary_of(plan);
  decision.why = summary.why;
  decision.candidates = summary.candidates;
  decision.emulates = !summary.is_native || !leaves_native_to_cublas(call);
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

// True if a scalar in host memory, real or complex FP64, is 1 or -1.
bool is_unit(const void* scalar, kintsugi_type type) {
  const auto* parts = static_cast<const double*>(scalar);
  return std::abs(parts[0]) == 1 && (!drop_in::is_complex(type) || parts[1] == 0);
}

}  // namespace

// Leaves FP64 products with beta != 0 to cuBLAS unless alpha and beta are 1 or -1. Other scalars need a
// longer epilogue, which costs more than the emulation gains: 4096 x 8192 x 4096 takes 5.2 ms on an H200, and
// 4.9 ms by cuBLAS. Scalars in device memory count as other scalars, since their values are not known here.
const char* reason_in_scalars(const Call& call, const CallState& state) {
  if (!is_fp64_by_default(call)) return nullptr;
  const kintsugi_type type = *call.type;
  const bool is_cheap = state.pointer_mode == KINTSUGI_SCALARS_ON_HOST &&
                        (is_zero(call.beta, type) || (is_unit(call.alpha, type) && is_unit(call.beta, type)));
  return is_cheap ? nullptr : "FP64 products that add to C gain too little for scalars other than 1 and -1";
}

DecisionPointer decide(const Call& call, const CallState& state) {
  const auto is_final = [](const Decision& decision) { return decision.is_final; };
  return decisions.get(
      key_of(call, state), [&] { return new_decision(call, state); }, is_final);
}

}  // namespace kintsugi::cublas
