#include "planner/candidates/checked.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "arith/residue/residue.hpp"
#include "engines/cuda/steps.hpp"
#include "planner/candidates/candidates.hpp"
#include "planner/problem.hpp"
#include "schemes/bound.hpp"
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
// The launches of a candidate that exits early take 12 us, so shorter products have fewer candidates. The
// shortest products have a single candidate with three more moduli: these cost less than the exact sums of
// the elements that would be open without them.
std::vector<int> exact_moduli(const Plan& plan, int first) {
  constexpr double short_products = 0x1p28;
  constexpr double moderate_products = 0x1p31;
  constexpr double long_products = 0x1p33;
  const Problem& problem = plan.problem;
  const double parts = problem.complex ? 2 : 1;
  const double products = static_cast<double>(problem.m) * static_cast<double>(problem.vectors_b()) *
                          static_cast<double>(problem.k) * parts;
  if (exact_scales(problem) == ScaleRule::norm) --first;
  if (products < short_products) return {first + 3};
  if (products < moderate_products) return {first, first + 4};
  if (products < long_products) return {first, first + 4, first + 16};
  // The fast split of FP32 elements makes integers of at most 62 bits, which need no more than 4 further
  // moduli; that of FP64 elements with scales by norms makes integers of at most 93 bits.
  if (problem.type == OperandType::f32) return {first, first + 2, first + 4, first + 16};
  int most = max_moduli;
  while (exact_scales(problem) == ScaleRule::norm && residue_bits(most) > 2 * 93) --most;
  return {first, first + 2, std::max(first + 3, std::min(first + 5, most)), first + 16};
}

// True if C has few elements and k is long. Slices are stored in tiles of 128 vectors, so few long vectors
// would take gigabytes of padding.
bool is_few_long_sums(const Problem& problem) {
  constexpr std::int64_t few = 1024;
  constexpr std::int64_t long_sum = 65536;
  return problem.products() >= long_sum && problem.m <= few && problem.vectors_b() <= few &&
         problem.m * problem.vectors_b() <= few;
}

}  // namespace

bool has_native_fallback(const Plan& plan) {
  if (!plan.engine->is_device() || plan.problem.type != OperandType::f64 ||
      !native_meets(plan.contract, plan.problem))
    return false;
  return cuda::has_native_on_tensor_cores(element_type(plan.problem)) && !norm_emulations(plan).empty();
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
  if (!plan.engine->is_device() || contract.checked_coefficient == 0) return {};
  constexpr bool exact = false;
  const int bits = significant_bits(
      contract.accuracy.is_of(OperandType::f32) ? OperandType::f32 : plan.problem.type, exact);
  const int first = contract.accuracy.is_of_type()
                        ? moduli_for(2 * (bits + 4) + 1, 1)
                        : moduli_for(5 - 2 * std::ilogb(contract.coefficient), plan.problem.products());
  if (first == 0) return {};
  std::vector<Candidate> chain;
  for (const int more : more_moduli) {
    auto candidate = offered(plan, ozaki2_variant(first + more, ScaleRule::norm));
    if (!candidate || !cuda::skips(candidate->program.schedule, candidate->program.format().id)) break;
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
  std::vector<Candidate> chain;
  if (!is_few_long_sums(plan.problem)) chain = checked_products(plan);
  if (const auto last = offered(plan, schemes::superaccumulator)) chain.push_back(*last);
  return chain;
}

}  // namespace kintsugi::core
