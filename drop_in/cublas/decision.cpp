#include "decision.hpp"

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
  int op_a, op_b, pointer_mode, adds_to_c, device;
  BatchKind batch;
  std::int64_t m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, count;
  const Site* site;

  bool operator==(const Key&) const = default;
};

// True if beta is known not to be 0.
bool adds_to_c(const Call& call, const CallState& state) {
  return state.pointer_mode == KINTSUGI_SCALARS_ON_HOST && !is_zero(call.beta, *call.type);
}

Key key_of(const Call& call, const CallState& state) {
  return {.type = *call.type,
          .op_a = call.op_a,
          .op_b = call.op_b,
          .pointer_mode = state.pointer_mode,
          .adds_to_c = adds_to_c(call, state) ? 1 : 0,
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
          std::int64_t{key.adds_to_c}, std::int64_t{key.device}, static_cast<std::int64_t>(key.batch), key.m,
          key.n, key.k, key.lda, key.ldb, key.ldc, key.stride_a, key.stride_b, key.stride_c, key.count})
      hash = (hash ^ static_cast<std::size_t>(number)) * 0x9e3779b97f4a7c15u;
    hash ^= reinterpret_cast<std::uintptr_t>(key.site) >> 4;
    return hash ^ (hash >> 32);
  }
};

// True if cuBLAS computes native products; false if Kintsugi computes them, in a fixed order.
bool leaves_native_to_cublas(const Call& call) {
  // Calls without a site are forwarded without a decision under the policy native.
  if (call.site == nullptr) return settings().policy == Policy::automatic;
  const drop_in::SiteRule& rule = call.site->rule;
  if (!rule.scheme.empty()) return false;
  if (!rule.policy.empty()) return rule.policy == "auto";
  return settings().policy == Policy::automatic || settings().policy == Policy::native;
}

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
  problem.adds_to_c = adds_to_c(call, state) ? 1 : 0;
  problem.batch_kind = call.batch == BatchKind::pointers ? KINTSUGI_BATCH_POINTERS : KINTSUGI_BATCH_STRIDED;
  return problem;
}

// True for failures that may not recur, such as a lack of memory.
bool is_temporary(kintsugi_status status) {
  return status == KINTSUGI_OUT_OF_MEMORY || status == KINTSUGI_DEVICE_ERROR;
}

// Makes a plan by the rule of the call's site; by the settings if the call has no site.
drop_in::FittingPlan make_plan(const Call& call, const CallState& state, kintsugi_options options) {
  const kintsugi_problem problem = problem_of(call, state);
  if (call.site == nullptr) return drop_in::make_fitting_plan(problem, options, settings().accuracy);
  const auto null_if_empty = [](const std::string& value) { return value.empty() ? nullptr : value.c_str(); };
  options.scheme = null_if_empty(call.site->rule.scheme);
  options.accuracy = null_if_empty(call.site->rule.accuracy);
  options.policy = null_if_empty(call.site->rule.policy);
  drop_in::FittingPlan made;
  made.status = kintsugi_plan_create(nullptr, &problem, &options, &made.plan);
  return made;
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
  const drop_in::FittingPlan made = make_plan(call, state, options);
  if (made.status != KINTSUGI_SUCCESS) {
    decision.is_final = !is_temporary(made.status);
    decision.why = std::string("no plan: ") + kintsugi_last_error();
    if (call.site != nullptr) {
      note_failure(*call.site, decision.why);
    } else if (settings().asks_for_products()) {
      decision.not_kept = decision.why;
    }
    return decision;
  }
  decision.plan.reset(made.plan);
  const drop_in::PlanSummary summary = drop_in::summary_of(made.plan);
  decision.not_kept = made.not_kept;
  decision.why = (made.not_kept.empty() ? "" : made.not_kept + ". ") + summary.why;
  decision.candidates = summary.candidates;
  decision.emulates = !summary.is_native || !leaves_native_to_cublas(call);
  if (!decision.emulates) decision.plan.reset();
  if (decision.emulates) kintsugi_plan_workspace_size(made.plan, &decision.workspace_bytes);
  return decision;
}

constinit drop_in::Kept<Key, Decision, KeyHash> decisions(decisions_mutex);

}  // namespace

// A plan serves any beta. So while the stream is captured, a decision of a call that differs in whether it
// adds to C takes the place of one that cannot be made.
DecisionPointer decide(const Call& call, const CallState& state) {
  const auto is_final = [](const Decision& decision) { return decision.is_final; };
  const Key key = key_of(call, state);
  DecisionPointer decision = decisions.get(
      key, [&] { return new_decision(call, state); }, is_final);
  if (decision->is_final || !is_captured(state.stream)) return decision;
  Key other = key;
  other.adds_to_c = 1 - key.adds_to_c;
  const Decision* const known = decisions.find(other);
  return known == nullptr ? std::move(decision) : DecisionPointer(known);
}

}  // namespace kintsugi::cublas
