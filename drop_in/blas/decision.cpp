#include "decision.hpp"

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "common/accuracy.hpp"
#include "common/documents.hpp"
#include "mutexes.hpp"
#include "settings.hpp"
#include "sites/site.hpp"

namespace kintsugi::blas {

namespace {

// Everything that a plan depends on.
struct Key {
  kintsugi_type type;
  Layout layout;
  Op op_a, op_b;
  std::int64_t m, n, k, lda, ldb, ldc;
  const Site* site;

  bool operator==(const Key&) const = default;
};

Key key_of(const Call& call) {
  return {call.type, call.layout, call.op_a, call.op_b, call.m,   call.n,
          call.k,    call.lda,    call.ldb,  call.ldc,  call.site};
}

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    const auto product = [](std::int64_t number, std::size_t factor) {
      return static_cast<std::size_t>(number) * factor;
    };
    // The products do not depend on each other, so they run in parallel. Every forwarded call computes a
    // hash.
    std::size_t hash = product(key.m, 0x9e3779b97f4a7c15u) + product(key.n, 0xbf58476d1ce4e5b9u) +
                       product(key.k, 0x94d049bb133111ebu) + product(key.lda, 0xd6e8feb86659fd93u) +
                       product(key.ldb, 0xa0761d6478bd642fu) + product(key.ldc, 0xe7037ed1a0b428dbu);
    hash += static_cast<std::size_t>(key.type) * 64 + static_cast<std::size_t>(key.layout) * 16 +
            static_cast<std::size_t>(key.op_a) * 4 + static_cast<std::size_t>(key.op_b);
    hash ^= reinterpret_cast<std::uintptr_t>(key.site) >> 4;
    return hash ^ (hash >> 32);
  }
};

// ------------------------------------------------------------------ plans

// Moves the plan into the decision. `is_automatic`: the plan was made under the policy auto.
void take_plan(kintsugi_plan plan, bool is_automatic, Decision& decision) {
  decision.plan.reset(plan);
  const drop_in::PlanSummary summary = drop_in::summary_of(plan);
  decision.why = summary.why;
  if (settings().forces_offload && !summary.is_offloaded) decision.not_kept = summary.offload;
  decision.may_be_native = summary.may_be_native;
  // Under auto the next BLAS computes native products. Under emulate Kintsugi computes them, in a fixed
  // order.
  decision.emulates = !summary.is_native || !is_automatic || summary.is_offloaded;
  if (!decision.emulates) decision.plan.reset();
}

// Writes one line to stderr for each site whose rule cannot be followed.
void note_failure(const Site& site, const std::string& message) {
  if (site.has_failed.exchange(true)) return;
  std::fprintf(stderr, "kintsugi: %s: its calls are native, since its rule makes %s\n", site.name.c_str(),
               message.c_str());
}

// Multiplies two small matrices and drops the result. An engine's first product opens libraries and starts
// threads; this call keeps that time out of the recorded time of the first site.
void warm_up(kintsugi_type type, const kintsugi_options& options) {
  constexpr std::int64_t order = 64;
  const float single_one[] = {1, 0};
  const double double_one[] = {1, 0};
  const std::vector<double> ones(order * order * 2, 1);  // large enough, and finite, as elements of any type
  std::vector<double> product(ones.size());
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  problem.m = problem.n = problem.k = problem.lda = problem.ldb = problem.ldc = order;
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = type;
  kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
  operands.alpha = operands.beta = is_single(type) ? static_cast<const void*>(single_one) : double_one;
  operands.a = operands.b = ones.data();
  operands.c = product.data();
  kintsugi_gemm(nullptr, &problem, &options, &operands);
}

Decision decision_of_site(const Call& call) {
  const Site& site = *call.site;
  Decision decision;
  if (site.rule.is_native()) {
    decision.why = site.has_rule ? "the sites file has native" : "the sites file does not name the call site";
    return decision;
  }
  const auto given = [](const std::string& value) { return value.empty() ? nullptr : value.c_str(); };
  const kintsugi_problem problem = problem_of(call);
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.scheme = given(site.rule.scheme);
  options.accuracy = given(site.rule.accuracy);
  options.policy = given(site.rule.policy);
  kintsugi_plan plan = nullptr;
  if (kintsugi_plan_create(nullptr, &problem, &options, &plan) != KINTSUGI_SUCCESS) {
    decision.why = std::string("no plan: ") + kintsugi_last_error();
    note_failure(site, decision.why);
    return decision;
  }
  const bool is_automatic =
      site.rule.policy.empty() ? settings().policy != Policy::emulate : site.rule.policy == "auto";
  take_plan(plan, is_automatic && site.rule.scheme.empty(), decision);
  if (decision.emulates && settings().records_calls()) warm_up(call.type, options);
  return decision;
}

Decision new_decision(const Call& call) {
  if (call.site != nullptr) return decision_of_site(call);
  Decision decision;
  if (settings().is_malformed() || settings().policy == Policy::native) {
    decision.why = settings().is_malformed() ? settings().malformed : "policy native forwards every call";
    return decision;
  }
  const drop_in::FittingPlan made =
      drop_in::make_fitting_plan(problem_of(call), KINTSUGI_OPTIONS_INIT, settings().accuracy);
  if (made.status != KINTSUGI_SUCCESS) {
    decision.why = std::string("no plan: ") + kintsugi_last_error();
    if (settings().asks_for_products()) decision.not_kept = decision.why;
    return decision;
  }
  take_plan(made.plan, settings().policy == Policy::automatic, decision);
  if (made.not_kept.empty()) return decision;
  decision.not_kept = made.not_kept;
  decision.why = made.not_kept + ". " + decision.why;
  return decision;
}

constinit drop_in::Kept<Key, Decision, KeyHash> decisions(decisions_mutex);

}  // namespace

kintsugi_problem problem_of(const Call& call) {
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  const auto op = [](Op blas_op) {
    return blas_op == Op::n ? KINTSUGI_OP_N : blas_op == Op::t ? KINTSUGI_OP_T : KINTSUGI_OP_C;
  };
  problem.m = call.m;
  problem.n = call.n;
  problem.k = call.k;
  problem.lda = call.lda;
  problem.ldb = call.ldb;
  problem.ldc = call.ldc;
  problem.op_a = op(call.op_a);
  problem.op_b = op(call.op_b);
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = call.type;
  problem.layout = call.layout == Layout::row_major ? KINTSUGI_ROW_MAJOR : KINTSUGI_COLUMN_MAJOR;
  return problem;
}

DecisionPointer decide(const Call& call) {
  const auto always = [](const Decision&) { return true; };
  return decisions.get(
      key_of(call), [&] { return new_decision(call); }, always);
}

// The policy `force` has a line of its own for each call that is not emulated.
DecisionPointer decide_and_note(const char* symbol, const Call& call) {
  DecisionPointer decision = decide(call);
  const bool has_line = settings().policy == Policy::force && !decision->emulates;
  if (!decision->not_kept.empty() && !has_line)
    drop_in::note_not_kept(settings(), symbol, decision->not_kept);
  return decision;
}

}  // namespace kintsugi::blas
