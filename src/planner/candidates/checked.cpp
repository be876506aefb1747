#include "planner/candidates/checked.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "arith/residue/residue.hpp"
#include "engines/device_engine.hpp"
#include "planner/candidates/candidates.hpp"
#include "planner/element_type.hpp"
#include "schemes/bound.hpp"
#include "schemes/superaccumulator.hpp"

namespace kintsugi::core {

namespace {

// Significant bits of a result of the type. For double-double: the bits of a correctly rounded number, most
// of which are stored, or those that its contracts count.
int significant_bits(OperandType type, bool exact) {
  if (type == OperandType::dd) return exact ? 107 : 104;
  return type == OperandType::f32 ? 24 : 53;
}

// Bits of the integers that the candidates of a checked fallback chain keep of every vector. The first has
// enough bits that a single product loses no more than the contract of its type (k = 1) or the tolerance
// allows. Ten and twenty-eight more serve rows and columns of wide dynamic ranges; the superaccumulator
// computes the elements that no candidate proves. Exact results also have a candidate of fifteen more bits,
// one modulus more than that of ten: it leaves open one of 32 elements that the latter leaves open. On
// devices the host does not wait for the number of open elements, so there is only one such candidate, with
// bits enough to leave few open, since elements summed one by one are expensive.
std::vector<int> checked_bits(const Plan& plan) {
  const bool exact = plan.contract.coefficient == 0;
  int bits = significant_bits(plan.problem.type, exact) + 2;
  if (plan.contract.coefficient > 0 && !plan.contract.accuracy.is_of_type())
    bits = std::min(bits, 2 - std::ilogb(plan.contract.coefficient));
  bits = std::max(bits, 2);
  if (plan.engine->device() != nullptr) return {bits + (exact ? 15 : 10)};
  if (exact) return {bits, bits + 10, bits + 15, bits + 28};
  return {bits, bits + 10, bits + 28};
}

// Returns the fewest moduli that hold sums of k products of `product_bits` bits; 0 if all moduli do not.
int moduli_of(int product_bits, std::int64_t k) {
  const auto sum_bits =
      static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(k, 1) - 1)));
  for (int count = 2; count <= max_moduli; ++count) {
    if (residue_bits(count) >= product_bits + sum_bits) return count;
  }
  return 0;
}

// Slices are stored in tiles of 128 vectors, so residues of a few long sums would take gigabytes of padding.
bool is_few_long_sums(const Problem& problem) {
  constexpr std::int64_t few = 1024;
  constexpr std::int64_t long_sum = 65536;
  return problem.products() >= long_sum && problem.m <= few && problem.vectors_b() <= few &&
         problem.m * problem.vectors_b() <= few;
}

}  // namespace

bool has_native_fallback(const Plan& plan) {
  const DeviceEngine* device = plan.engine->device();
  if (device == nullptr || plan.problem.type != OperandType::f64 ||
      !native_meets(plan.contract, plan.problem))
    return false;
  return device->has_quick_native(element_type(plan.problem)) && !norm_emulations(plan).empty();
}

bool needs_checks(const Plan& plan) {
  const double coefficient = plan.contract.coefficient;
  if (coefficient == 0) return true;
  if (has_native_fallback(plan)) return false;
  const bool windows_do = plan.engine->device() == nullptr || native_meets(plan.contract, plan.problem);
  return coefficient >= unit_roundoff(plan.problem.type) &&
         (plan.problem.type != OperandType::f32 || !windows_do);
}

// Returns candidates by the number of moduli that norms prove, mostly for a contract of the type: the first
// has as many moduli as elements of the type need, which are proved up to phi = 1; the next has two more, for
// phi = 2 (measurements: docs/DEVICES.md).
//
// The contract's coefficient k + 8 would allow a coarse split in a long sum, whose error a native product
// never has: with random signs that typically deviates by 0.15 u |a_i| |b_j|, however long the sum is. Grids
// of g <= 2^1.5 |a_i| 2^(-R / 2) with independent roundings give, for any operands,
//
//   E |AB - S|^2 <= k (g_i^2 |b_j|^2 + g_j^2 |a_i|^2) / 12 = 4/3 |a_i|^2 |b_j|^2 / 2^R,
//
// below u / 16 |a_i| |b_j| for R = 2 (digits + 4) + 1. A tolerance is taken as it is, since the caller chose
// it.
std::vector<Candidate> norm_emulations(const Plan& plan, int widest) {
  const DeviceEngine* device = plan.engine->device();
  const Contract& contract = plan.contract;
  if (device == nullptr || contract.checked_coefficient == 0) return {};
  const int digits = significant_bits(
      contract.accuracy.is_of(OperandType::f32) ? OperandType::f32 : plan.problem.type, false);
  const int first = contract.accuracy.is_of_type()
                        ? moduli_of(2 * (digits + 4) + 1, 1)
                        : moduli_of(5 - 2 * std::ilogb(contract.coefficient), plan.problem.products());
  if (first == 0) return {};
  std::vector<int> counts{first, first + 2};
  if (widest > first + 2) counts.push_back(widest);
  std::vector<Candidate> chain;
  for (const int count : counts) {
    auto candidate = offered(plan, residues(count, ScaleRule::norm));
    if (!candidate || !device->skips(candidate->program.schedule, candidate->program.format().id)) break;
    candidate->acceptance.norm_bits = candidate->program.split_a.sum_bits;
    candidate->acceptance.norm_top_exponent = candidate->program.split_a.top_exponent;
    chain.push_back(*candidate);
  }
  return chain;
}

std::vector<Candidate> checked_emulations(const Plan& plan) {
  std::vector<Candidate> chain;
  for (const int bits : checked_bits(plan)) {
    if (is_few_long_sums(plan.problem)) break;
    const int count = moduli_of(2 * bits, plan.problem.products());
    const auto candidate = count == 0 ? std::nullopt : offered(plan, residues(count, ScaleRule::exponent));
    if (!candidate) break;
    if (chain.empty()) chain = norm_emulations(plan, count + 1);
    chain.push_back(*candidate);
    chain.back().checked = true;
  }
  if (const auto last = offered(plan, schemes::superaccumulator)) chain.push_back(*last);
  return chain;
}

}  // namespace kintsugi::core
