#include "decision.hpp"

#include <cstdlib>
#include <new>
#include <vector>

#include "settings.hpp"
#include "sites/site.hpp"

namespace kintsugi::drop_in {

namespace {

// ------------------------------------------------------------------ accuracy

// Returns the coefficient of |A||B| of the type's own contract.
double own_coefficient(kintsugi_type type, std::int64_t k) {
  const double unit_roundoff = is_single(type) ? 0x1p-24 : 0x1p-53;
  const double products = static_cast<double>(k) * (is_complex(type) ? 2 : 1);
  return (products + 8) * unit_roundoff;
}

// Returns the stricter one of two accuracies of a product with inner dimension k: `asked` and the type's own.
std::string stricter_accuracy(const std::string& asked, kintsugi_type type, std::int64_t k) {
  if (asked == "exact" || asked == "reproducible") return asked;
  char* end = nullptr;
  const double tolerance = std::strtod(asked.c_str(), &end);
  const bool is_number = !asked.empty() && end == asked.c_str() + asked.size();
  return is_number && tolerance < own_coefficient(type, k) ? asked : own_accuracy(type);
}

// ------------------------------------------------------------------ plans

struct Made {
  kintsugi_status status = KINTSUGI_SUCCESS;
  kintsugi_plan plan = nullptr;
  std::string not_kept;  // why the plan does not have the accuracy that was asked for; "": it has
};

// Makes a plan with the stricter one of the accuracies of settings and type. If no program is proved to keep
// that accuracy, as for a tolerance that is meant for another type, makes a plan with the type's own.
Made plan_of_settings(const kintsugi_problem& problem, kintsugi_options options, kintsugi_handle handle) {
  const std::string& asked = settings().accuracy;
  const auto type = static_cast<kintsugi_type>(problem.type_c);
  const std::string own = own_accuracy(type);
  const std::string accuracy = stricter_accuracy(asked, type, problem.k);
  Made made;
  if (asked == "dd" || (asked == "fp64" && is_single(type)))
    made.not_kept =
        "accuracy " + asked + " is stricter than matrices of this type hold, so " + own + " is kept";
  options.accuracy = accuracy.c_str();
  made.status = kintsugi_plan_create(handle, &problem, &options, &made.plan);
  if (made.status != KINTSUGI_CONTRACT_UNREACHABLE || accuracy == own) return made;
  made.not_kept = std::string(kintsugi_last_error()) + "; " + own + " is kept";
  options.accuracy = own.c_str();
  made.status = kintsugi_plan_create(handle, &problem, &options, &made.plan);
  return made;
}

void set_options(kintsugi_options& options, const SiteRule& rule) {
  const auto null_if_empty = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
  options.scheme = null_if_empty(rule.scheme);
  options.accuracy = null_if_empty(rule.accuracy);
  options.policy = null_if_empty(rule.policy);
}

// True if the hidden library computes native products; false if Kintsugi computes them, in a fixed order.
bool leaves_native(const Site* site) {
  if (site == nullptr) return settings().policy == Policy::automatic;
  if (!site->rule.scheme.empty()) return false;
  return site->rule.policy.empty() ? settings().policy != Policy::emulate : site->rule.policy == "auto";
}

// Moves the plan into the decision.
void take_plan(const Made& made, const Site* site, Decision& decision) {
  decision.plan.reset(made.plan);
  kintsugi_plan_summary summary = KINTSUGI_PLAN_SUMMARY_INIT;
  if (kintsugi_plan_summarize(made.plan, &summary) != KINTSUGI_SUCCESS) throw std::bad_alloc();
  const std::string offload = summary.offload;
  decision.candidates = summary.candidates;
  decision.may_be_native = summary.may_be_native != 0;
  decision.is_offloaded = summary.is_offloaded != 0;
  decision.native_seconds = summary.native_seconds;
  decision.why = (made.not_kept.empty() ? "" : made.not_kept + ". ") + summary.reason;
  if (!offload.empty()) decision.why += " " + offload;
  if (settings().forces_offload && !decision.is_offloaded) decision.not_kept = offload;
  if (!made.not_kept.empty()) decision.not_kept = made.not_kept;
  decision.emulates = summary.is_native == 0 || !leaves_native(site) || decision.is_offloaded;
  if (!decision.emulates) decision.plan.reset();
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

// True for failures that may not recur, such as a lack of memory.
bool is_temporary(kintsugi_status status) {
  return status == KINTSUGI_OUT_OF_MEMORY || status == KINTSUGI_DEVICE_ERROR;
}

}  // namespace

Decision decision_of_native_site(const Site& site) {
  Decision decision;
  decision.why = site.has_rule ? "the sites file has native" : "the sites file does not name the call site";
  return decision;
}

Decision new_decision(const Call& call, const kintsugi_problem& problem, kintsugi_options options,
                      kintsugi_handle handle) {
  const Site* const site = call.site;
  if (site != nullptr && site->rule.is_native()) return decision_of_native_site(*site);
  Decision decision;
  if (site == nullptr && (settings().is_malformed() || settings().policy == Policy::native)) {
    decision.why = settings().is_malformed() ? settings().malformed : "policy native forwards every call";
    return decision;
  }
  Made made;
  if (site == nullptr) {
    made = plan_of_settings(problem, options, handle);
  } else {
    set_options(options, site->rule);
    made.status = kintsugi_plan_create(handle, &problem, &options, &made.plan);
  }
  if (made.status != KINTSUGI_SUCCESS) {
    decision.is_final = !is_temporary(made.status);
    decision.why = std::string("no plan: ") + kintsugi_last_error();
    if (site != nullptr) {
      note_failure(*site, decision.why);
    } else if (settings().asks_for_products()) {
      decision.not_kept = decision.why;
    }
    return decision;
  }
  take_plan(made, site, decision);
  const bool is_timed_on_host = problem.memory != KINTSUGI_DEVICE && site != nullptr && records_calls();
  if (decision.emulates && is_timed_on_host) warm_up(call.type, options);
  return decision;
}

void note_decision(const char* symbol, const Decision& decision) {
  if (!decision.emulates && settings().policy == Policy::force) return note_failure(symbol, decision.why);
  if (!decision.not_kept.empty()) note_not_kept(symbol, decision.not_kept);
}

}  // namespace kintsugi::drop_in
