#include "planner/candidates.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "arith/residue/residue.hpp"
#include "base/status.hpp"
#include "engines/cuda/steps.hpp"
#include "planner/expected_times.hpp"
#include "planner/limits.hpp"
#include "planner/problem.hpp"
#include "planner/steps.hpp"
#include "schemes/bound.hpp"
#include "schemes/int52.hpp"
#include "schemes/ozaki2.hpp"
#include "schemes/ozaki_int8.hpp"
#include "schemes/superaccumulator.hpp"

namespace kintsugi::core {

namespace {

// Returns the significant bits of a result of the type. A correctly rounded double-double number nearly
// always has 107 bits. The contract of double-double counts 104.
int significant_bits(OperandType type, bool exact) {
  if (type == OperandType::dd) return exact ? 107 : 104;
  return type == OperandType::f32 ? 24 : 53;
}

// Returns the bits of the integers to which vectors are scaled, for each candidate of a checked fallback
// chain.
//
// The first candidate has so many bits that a single product keeps the contract of its type (k = 1) or the
// tolerance. Candidates with 10 and 28 more bits serve rows and columns of wide dynamic ranges. For exact
// results there is another candidate with 15 more bits. This candidate costs one modulus more than the
// candidate with 10 more bits, and leaves open only one of 32 elements that the candidate with 10 more bits
// leaves open.
//
// For contracts that allow errors, devices have a single checked candidate. With several candidates, the bits
// of an element would depend on other elements. The reason is that the candidate that proves an element
// decides the element's bits, and that the number of all open elements decides how many candidates run.
std::vector<int> checked_bits(const Plan& plan) {
  const bool exact = plan.contract.coefficient == 0;
  int bits = significant_bits(plan.problem.type, exact) + 2;
  if (plan.contract.coefficient > 0 && !plan.contract.accuracy.is_of_type())
    bits = std::min(bits, 2 - std::ilogb(plan.contract.coefficient));
  bits = std::max(bits, 2);
  if (plan.engine->is_device()) return {bits + (exact ? 15 : 10)};
  if (exact) return {bits, bits + 10, bits + 15, bits + 28};
  return {bits, bits + 10, bits + 28};
}

// Returns the smallest number of moduli whose residues represent sums of k products of `product_bits` bits; 0
// if max_moduli are too few.
int moduli_for(int product_bits, std::int64_t k) {
  const auto k_bits =  // k <= 2^k_bits
      static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(k, 1) - 1)));
  for (int count = 2; count <= max_moduli; ++count) {
    if (residue_bits(count) >= product_bits + k_bits) return count;
  }
  return 0;
}

// True if the plan is for a device whose kernels for the candidate exit early when it is not selected.
bool skips_products(const Plan& plan, const Candidate& candidate) {
  return plan.engine->is_device() && cuda::skips(candidate.program.schedule, candidate.program.format().id);
}

// Rule of the scales of the checked candidates of `exact` on a device. Scales by norms are worth one modulus
// or more; there are kernels for them that read real FP64 operands once.
ScaleRule exact_scales(const Problem& problem) {
  return problem.type == OperandType::f64 && !problem.complex ? ScaleRule::norm : ScaleRule::exponent;
}

// Returns the numbers of moduli of the checked candidates of `exact` on a device. `first` moduli give 15 more
// bits than a single product needs; one fewer suffices with scales by norms. Each further modulus divides the
// number of open elements by 8 to 100. 16 further moduli serve vectors with elements some fifty binades deep.
// Shorter products have fewer candidates (planner/limits.hpp). The shortest have a single candidate with
// three more moduli: these cost less than the exact sums of the elements that would be open without them.
std::vector<int> exact_moduli(const Plan& plan, int first) {
  const Problem& problem = plan.problem;
  const double parts = problem.complex ? 2 : 1;
  const double products = static_cast<double>(problem.m) * static_cast<double>(problem.vectors_b()) *
                          static_cast<double>(problem.k) * parts;
  if (exact_scales(problem) == ScaleRule::norm) --first;
  if (products < limits::one_checked_candidate) return {first + 3};
  if (products < limits::two_checked_candidates) return {first, first + 4};
  if (products < limits::three_checked_candidates) return {first, first + 4, first + 16};
  // The fast split of FP32 elements makes integers of at most 62 bits, which need no more than 4 further
  // moduli; that of FP64 elements with scales by norms makes integers of at most 93 bits.
  if (problem.type == OperandType::f32) return {first, first + 2, first + 4, first + 16};
  int most = max_moduli;
  while (exact_scales(problem) == ScaleRule::norm && residue_bits(most) > 2 * 93) --most;
  return {first, first + 2, std::max(first + 3, std::min(first + 5, most)), first + 16};
}

// True if C has few elements and k is long. Only the shape decides, since under contracts that allow errors
// the program decides the bits.
bool is_few_long_sums(const Problem& problem) {
  constexpr std::int64_t few = limits::few_elements;
  return problem.products() >= limits::long_sum && problem.m <= few && problem.vectors_b() <= few &&
         problem.m * problem.vectors_b() <= few;
}

// True on the host for real elements if one side or k is so short that residues, which are stored and checked
// in tiles, take longer than exact sums. As is_few_long_sums(), a function of the shape alone.
bool has_short_side(const Plan& plan) {
  const Problem& problem = plan.problem;
  return !plan.engine->is_device() && problem.type == OperandType::f64 && !problem.complex &&
         std::min({problem.m, problem.n, problem.k}) <= limits::short_side;
}

// True if the superaccumulator computes all elements. Under `exact`, whose bits do not depend on the program,
// expected times decide.
bool sums_all_exactly(const Plan& plan, const std::vector<Candidate>& checked) {
  if (is_few_long_sums(plan.problem) || has_short_side(plan)) return true;
  return plan.contract.coefficient == 0 && !checked.empty() &&
         exact_sums_pay(*plan.engine, checked.front().program, plan.problem, plan.conditions());
}

}  // namespace

bool has_native_fallback(const Plan& plan) {
  if (!plan.engine->is_device() || plan.problem.type != OperandType::f64 ||
      !native_meets(plan.contract, plan.problem))
    return false;
  return cuda::has_fast_native(element_type(plan.problem)) && !norm_emulations(plan).empty();
}

bool needs_checks(const Plan& plan) {
  const double coefficient = plan.contract.coefficient;
  if (coefficient == 0) return true;
  if (has_native_fallback(plan)) return false;
  const bool needs_native = plan.engine->is_device();
  const bool windows_suffice =
      plan.problem.type == OperandType::f32 && (!needs_native || native_meets(plan.contract, plan.problem));
  return coefficient >= unit_roundoff(plan.problem.type) && !windows_suffice;
}

// For a contract of the type the least number of moduli is that which elements of the type need: norms then
// prove operands of the distribution (rand - 0.5) exp(phi randn) up to phi = 1.5. One or two more serve phi =
// 2 (measurements: docs/design/selection.md).
//
// The number of moduli does not follow from the contract's coefficient. The coefficient grows with k, so for
// long sums it would allow coarse splits, with errors that a native product never has: with random signs, a
// native product typically deviates by 0.15 u |a_i| |b_j| for every k. Therefore the number of bits R of the
// scaled sums follows from the deviation of the split. For grids of g <= 2^1.5 |a_i| 2^(-R / 2) and
// independent roundings,
//
//   E |AB - S|^2 <= k (g_i^2 |b_j|^2 + g_j^2 |a_i|^2) / 12 = 4/3 |a_i|^2 |b_j|^2 / 2^R.
//
// below u / 16 |a_i| |b_j| for R = 2 (bits + 4) + 1, with u = 2^-bits. A tolerance is taken as it is, since
// the caller chose it.
std::vector<Candidate> norm_emulations(const Plan& plan, const std::vector<int>& more_moduli) {
  const Contract& contract = plan.contract;
  const bool is_device = plan.engine->is_device();
  if (contract.checked_coefficient == 0 || contract.coefficient == 0) return {};
  if (!is_device && !contract.accuracy.is_of(plan.problem.type)) return {};
  constexpr bool exact = false;
  const int bits = significant_bits(
      contract.accuracy.is_of(OperandType::f32) ? OperandType::f32 : plan.problem.type, exact);
  const int first = contract.accuracy.is_of_type()
                        ? moduli_for(2 * (bits + 4) + 1, 1)
                        : moduli_for(5 - 2 * std::ilogb(contract.coefficient), plan.problem.products());
  if (first == 0) return {};
  std::vector<Candidate> chain;
  const bool may_pay =
      plan.request.policy != Policy::automatic || plan.problem.k >= limits::least_length_of_digits;
  if (!is_device && plan.problem.type == OperandType::f32 && !plan.problem.complex && may_pay) {
    if (auto digits = offered(plan, schemes::int8x6)) {
      digits->acceptance.norm_bits = residue_bits(2);  // not 0
      digits->acceptance.norm_top_exponent = digits->program.split_a.top_exponent + 16;
      chain.push_back(*digits);
    }
  }
  for (const int more : more_moduli) {
    auto candidate = offered(plan, ozaki2_variant(first + more, ScaleRule::norm));
    if (!candidate ||
        (is_device && !cuda::skips(candidate->program.schedule, candidate->program.format().id)))
      break;
    // Products of an engine without such a kernel have the bits of their embedding, whose candidates norms do
    // not prove in FP32.
    const bool is_complex_f32 = plan.problem.complex && plan.problem.type == OperandType::f32;
    if (!is_device && is_complex_f32 && fused_kernel(plan, *candidate) == nullptr) break;
    candidate->acceptance.norm_bits = candidate->program.split_a.sum_bits;
    candidate->acceptance.norm_top_exponent = candidate->program.split_a.top_exponent;
    chain.push_back(*candidate);
  }
  return chain;
}

namespace {

// Returns the checked candidates of `exact` on a device whose kernels exit early; none if the device has no
// such kernels. Complex elements are multiplied without the embedding. The number of moduli is limited to
// what the device's check supports.
std::vector<Candidate> exact_on_device(const Plan& plan, int first) {
  std::vector<Candidate> chain;
  for (const int wanted : exact_moduli(plan, first)) {
    const int count = std::min(wanted, cuda::max_checked_moduli());
    if (!chain.empty() && count == chain.back().parameters.moduli) break;
    auto candidate = offered(plan, ozaki2_variant(count, exact_scales(plan.problem)));
    if (!candidate || !skips_products(plan, *candidate)) break;
    if (plan.problem.complex && !candidate->program.multiplies_elements()) break;
    candidate->checked = true;
    chain.push_back(*candidate);
  }
  return chain;
}

// Returns the candidates that norms prove, for a chain in which one with `count` moduli checks its elements.
std::vector<Candidate> norms_before_checks(const Plan& plan, int count) {
  std::vector<Candidate> chain = norm_emulations(plan);
  if (chain.empty()) return chain;
  const int more = count + 1 - chain.front().parameters.moduli;
  return more > 2 ? norm_emulations(plan, {0, 2, more}) : chain;
}

// Returns the checked candidates and, on a device, before them those that norms prove.
std::vector<Candidate> checked_products(const Plan& plan) {
  std::vector<Candidate> chain;
  for (const int bits : checked_bits(plan)) {
    const int count = moduli_for(2 * bits, plan.problem.products());
    const auto candidate =
        count == 0 ? std::nullopt : offered(plan, ozaki2_variant(count, ScaleRule::exponent));
    if (!candidate) break;
    if (plan.engine->is_device() && plan.contract.coefficient == 0) {
      chain = exact_on_device(plan, count);
      if (!chain.empty()) return chain;
    }
    if (chain.empty()) chain = norms_before_checks(plan, count);
    chain.push_back(*candidate);
    chain.back().checked = true;
  }
  return chain;
}

}  // namespace

std::vector<Candidate> checked_emulations(const Plan& plan) {
  std::vector<Candidate> chain = checked_products(plan);
  if (sums_all_exactly(plan, chain)) chain.clear();
  if (const auto last = offered(plan, schemes::superaccumulator)) chain.push_back(*last);
  return chain;
}

// ---------------------------------------------------------------- reproducible

namespace {

constexpr SplitRule grid = schemes::int52.program.split_a;
constexpr int grid_bits = grid.top_exponent + 1;

void check_request(const Plan& plan) {
  const std::string& scheme = plan.request.scheme;
  if (plan.engine->is_device()) {
    fail(Status::not_supported,
         "engine {} does not compute reproducible products; the engines reference and cpu do",
         plan.engine->name());
  }
  if (plan.request.policy == Policy::native) {
    fail(Status::contract_unreachable,
         "accuracy \"reproducible\" and policy \"native\" contradict each other: the bits of native products "
         "depend on engine and threads");
  }
  if (!scheme.empty() && scheme != schemes::int52.name && scheme != schemes::ozaki2.name) {
    fail(
        Status::contract_unreachable,
        "scheme = \"{}\" and accuracy = \"reproducible\" contradict each other; the schemes int52 and ozaki2 "
        "multiply on its grid",
        scheme);
  }
}

// Returns the largest integer e with 2^e < limit.
int exponent_below(double limit) {
  const int exponent = std::ilogb(limit);
  return std::ldexp(1.0, exponent) < limit ? exponent : exponent - 1;
}

// Returns the acceptance by exponents. It proves the contract as follows. L_i is the largest exponent of row
// i, so |a_ip| < 2^(L_i + 1). The unit of row i on the grid is u_i <= 2^(1 - top + L_i), since the scale
// belongs to an exponent that is at most L_i + 1. L_j and v_j are the same for column j.
//
// The product of two rounded non-zero elements differs from the product of the elements by at most
//
//   u_i / 2 |b_pj| + v_j / 2 |a_ip| + u_i v_j / 4.
//
// - Mean depth: the sum over `pairs` such products loses less than pairs * 2^(2 - top + L_i + L_j) (1 +
//   2^-top), and |A||B| is at least pairs * 2^(L_i + L_j - depth) (are_within_depth()).
// - Dynamic range: an element is at least 2^-range of the largest element of its vector, so each product
//   loses at most 2^(1 - top + range) (1 + 2^-top) |a_ip||b_pj|.
//
// The last rounding adds u. The factor 1 + 2^-top may be ignored: coefficients are integers times u, so a
// strict comparison has the same result with the factor.
Acceptance acceptance_of(const Plan& plan) {
  const double allowed = plan.contract.coefficient - unit_roundoff(plan.problem.type);
  Acceptance acceptance;
  acceptance.dynamic_range = exponent_below(allowed) + grid.top_exponent - 1;
  acceptance.mean_depth = exponent_below(allowed) + grid.top_exponent - 2;
  return acceptance;
}

// Returns the candidate by residues, with enough moduli to represent sums of k products of the grid's
// integers; nothing if all moduli are not enough.
std::optional<Candidate> by_residues(const Plan& plan) {
  const auto k = static_cast<std::uint64_t>(std::max<std::int64_t>(plan.problem.products(), 1));
  const int bits = 2 * grid_bits + static_cast<int>(std::bit_width(k - 1));
  int count = 2;
  while (count < max_moduli && residue_bits(count) < bits) ++count;
  if (residue_bits(count) < bits) return std::nullopt;
  auto candidate = offered(plan, ozaki2_variant(count, ScaleRule::exponent));
  if (!candidate) return std::nullopt;
  candidate->program.split_a.top_exponent = candidate->program.split_b.top_exponent = grid.top_exponent;
  candidate->program.scales_as_words = true;
  return candidate;
}

// Returns the candidate by words whose integers are summed one element after the other, without slices.
std::optional<Candidate> by_sums(const Plan& plan) {
  auto candidate = offered(plan, schemes::int52);
  if (!candidate) return std::nullopt;
  candidate->program.recombination = Recombination::exact_sums;
  candidate->program.scales_as_words = true;
  return candidate;
}

std::optional<Candidate> grid_candidate(const Plan& plan) {
  const std::string& scheme = plan.request.scheme;
  const bool is_short = std::min(plan.problem.m, plan.problem.n) <= limits::short_side;
  if (scheme != schemes::ozaki2.name && (is_few_long_sums(plan.problem) || is_short)) return by_sums(plan);
  auto words = scheme == schemes::ozaki2.name ? std::nullopt : offered(plan, schemes::int52);
  auto residues = scheme == schemes::int52.name ? std::nullopt : by_residues(plan);
  if (!words || !residues) return words ? words : residues;
  const bool has_fast_words = plan.engine->relative_rate(grid.format->id) >= limits::rate_of_fast_words;
  const bool takes_words = has_fast_words || relative_cost(*plan.engine, words->program) <=
                                                 relative_cost(*plan.engine, residues->program);
  return takes_words ? words : residues;
}

// Returns the candidates of `exact`. If a plan does not take all of them after the grid, the third is left
// out: it has just one modulus more than the second. All candidates give the same bits.
std::vector<Candidate> exact_candidates(const Plan& plan) {
  Plan exact_plan = plan;
  exact_plan.contract = {.accuracy = {Accuracy::Kind::exact}};
  std::vector<Candidate> chain = checked_emulations(exact_plan);
  constexpr std::size_t too_many = 5;
  if (chain.size() == too_many) chain.erase(chain.begin() + 2);
  return chain;
}

}  // namespace

std::vector<Candidate> reproducible_candidates(const Plan& plan) {
  check_request(plan);
  std::vector<Candidate> chain = exact_candidates(plan);
  if (plan.problem.type == OperandType::dd) return chain;
  const auto candidate = grid_candidate(plan);
  if (!candidate) {
    fail(Status::not_supported, "engine {} does not multiply reproducibly by scheme {}", plan.engine->name(),
         plan.request.scheme.empty() ? "int52 or ozaki2" : plan.request.scheme);
  }
  chain.insert(chain.begin(), *candidate);
  chain.front().acceptance = acceptance_of(plan);
  return chain;
}

}  // namespace kintsugi::core
