#include "plan/candidates.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "arith/residue.hpp"
#include "base/status.hpp"
#include "engines/device.hpp"
#include "plan/bound.hpp"
#include "plan/device_matrix.hpp"
#include "plan/expected_times.hpp"
#include "plan/schemes/ozaki2.hpp"
#include "plan/schemes/superaccumulator.hpp"

namespace kintsugi::core {

namespace {

// An emulation that is proved, and its coefficient of |A||B| at best.
struct Proved {
  Candidate candidate;
  double coefficient;
};

bool rescales(const Schedule& schedule) {
  return std::any_of(schedule.terms.begin(), schedule.terms.end(),
                     [](const Term& term) { return term.rescales; });
}

double split_limit(const Contract& contract) {
  return contract.accuracy == "fp32" ? 9 * 0x1p-24 : 9 * 0x1p-53;
}

// The largest depth at which it is proved to meet the contract, whatever single elements span. What elements lose to floors is
// no part of themselves, and forgiven by no long sum: a fraction of 2^-24 of scaled vectors whose norms are 2^14 at least,
// in no order, typically is less than 2^-38 of the product of norms, of which a native product deviates by 2^-27.
int proved_depth(const Plan& plan, const Candidate& candidate) {
  const bool is_found = plan.engine->device() != nullptr && plan.problem.type == OperandType::f32;
  if (!is_found || candidate.program.recombination != Recombination::weighted ||
      !candidate.program.format().floating)
    return 0;
  const std::int64_t k = plan.problem.products();
  const ErrorBound bound = error_bound(candidate.program, candidate.accumulator, k, false, false);
  const auto is_proved = [&](int depth) {
    return bound_at_depth(candidate.program, bound, plan.problem.type, k, depth) <= plan.contract.coefficient;
  };
  int depth = 0;
  while (depth < 100 && is_proved(depth + 1)) ++depth;
  return depth;
}

// The widest span at which the program is proved to meet the contract; nothing: not even at 0. What stands for
// FP32 (FP64) must also keep its bits in every single product (9 u, the contract at k = 1): a long sum would forgive a
// coarse split that the native product never has.
std::optional<Proved> prove(const Candidate& candidate, const Contract& contract, OperandType type,
                            std::int64_t k) {
  const Program& program = candidate.program;
  // Algorithm 3 of the Ozaki scheme estimates; ozaki2 has fewer products for a proof.
  if (program.recombination == Recombination::error_free) return std::nullopt;
  Proved proved{candidate, 0};
  if (!program.split_a.scale_vectors || !program.split_b.scale_vectors) return std::nullopt;
  if (contract.is_of_type() && split_loss(program) > split_limit(contract)) return std::nullopt;
  const ErrorBound bound = error_bound(program, candidate.accumulator, k, true, true);
  int span = std::min(window_span(program.split_a), window_span(program.split_b));
  while (span >= 0 && relative_bound(program, bound, type, k, span, span) > contract.coefficient) --span;
  if (span < 0) return std::nullopt;
  proved.candidate.largest_span = span;
  // All that integer programs lose is in the floors.
  proved.coefficient =
      program.format().floating ? bound.relative : relative_bound(program, bound, type, k, 0, 0);
  return proved;
}

// Makes a fallback chain of increasing spans fit its places. Where native follows, the widest go: it takes what they would.
// Else those go first that a wider one of the same cost follows, and then those before the widest.
void shorten(std::vector<Candidate>& chain, const Engine& engine, std::size_t most, bool native_follows) {
  while (chain.size() > most) {
    const auto replaced =
        std::adjacent_find(chain.begin(), chain.end(), [&](const Candidate& x, const Candidate& y) {
          return relative_cost(engine, x.program) == relative_cost(engine, y.program);
        });
    if (native_follows) {
      chain.pop_back();
    } else {
      chain.erase(replaced != chain.end() ? replaced : chain.end() - 2);
    }
  }
}

// Of double-double the bits of a correctly rounded number, most of which are there, or those that contracts speak of.
int significant_bits(OperandType type, bool exact) {
  if (type == OperandType::dd) return exact ? 107 : 104;
  return type == OperandType::f32 ? 24 : 53;
}

// Bits of the integers that a checked fallback chain's candidates keep of every vector: enough that a product alone loses no more
// than the contract of its type (k = 1) or the tolerance allows, and ten and twenty-eight more for rows and columns of
// wide ranges, where entries that no candidate shows are left for the superaccumulator. Exact results have a candidate of fifteen
// more too, a modulus beside that of ten: of 32 entries that the latter leaves open it leaves one. On devices nobody waits to
// hear how many are open, so that there is one such candidate, which leaves few: entries summed one by one are dear.
std::vector<int> checked_bits(const Plan& plan) {
  const bool exact = plan.contract.coefficient == 0;
  int bits = significant_bits(plan.problem.type, exact) + 2;
  if (plan.contract.coefficient > 0 && !plan.contract.is_of_type())
    bits = std::min(bits, 2 - std::ilogb(plan.contract.coefficient));
  bits = std::max(bits, 2);
  if (plan.engine->device() != nullptr) return {bits + (exact ? 15 : 10)};
  if (exact) return {bits, bits + 10, bits + 15, bits + 28};
  return {bits, bits + 10, bits + 28};
}

// The fewest moduli that hold sums of k products of so many bits; 0 where not even all do.
int moduli_of(int product_bits, std::int64_t k) {
  const auto sum_bits =
      static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(k, 1) - 1)));
  for (int count = 2; count <= most_moduli; ++count) {
    if (residue_bits(count) >= product_bits + sum_bits) return count;
  }
  return 0;
}

// What a fallback chain of windows has of a scheme. Residues by as many moduli as an FP32 number asks for hardly have one: those of
// an FP64 number do.
const Scheme& with_window(const Scheme& scheme, OperandType type) {
  if (!scheme.program.sized_by_type || type != OperandType::f32) return scheme;
  return *find_scheme(fmt::format("{}:moduli={}", scheme.name, schemes::ozaki2_default));
}

// Whether the emulation is expected to be quicker than the native product, by more than measurements differ.
bool wins(const Plan& plan, const Program& program) {
  if (program.recombination == Recombination::exact_sums) return false;
  const ExpectedTimes times = expected_times(*plan.engine, program, plan.problem);
  return times.emulated < 0.95 * times.native;
}

// Slices come in tiles of 128 vectors: residues of a few long sums would take gigabytes of padding.
bool is_few_long_sums(const Problem& problem) {
  constexpr std::int64_t few = 1024;
  constexpr std::int64_t long_sum = 65536;
  return problem.products() >= long_sum && problem.m <= few && problem.vectors_b() <= few &&
         problem.m * problem.vectors_b() <= few;
}

}  // namespace

double relative_cost(const Engine& engine, const Program& program) {
  if (program.recombination == Recombination::exact_sums) return std::numeric_limits<double>::infinity();
  const double share = program.multiplies_entries() ? 0.25 : 1;  // of the four products of an embedding
  return share * static_cast<double>(program.schedule.terms.size()) /
         engine.relative_rate(program.format().id);
}

Program fitted_program(const Plan& plan, const Scheme& scheme) {
  const Program program = kintsugi::core::fitted_program(scheme, plan.problem);
  const DeviceEngine* device = plan.engine->device();
  if (device == nullptr || !program.multiplies_entries() || device->takes_entries(program.split_a))
    return program;
  return kintsugi::core::fitted_program(scheme, plan.problem.type, plan.problem.products());
}

std::vector<Accumulator> accumulators_of(const Engine& engine, const Program& program, EntryType type) {
  const FormatId format = program.format().id;
  const DeviceEngine* device = engine.device();
  std::vector<Accumulator> ways;
  for (const Accumulator way : engine.accumulators(format)) {
    if (device == nullptr || !is_tensor_core(way) || device->fuses(program.schedule, format, way, type))
      ways.push_back(way);
  }
  return ways;
}

bool is_fused(const Plan& plan, const Candidate& candidate) {
  const DeviceEngine* device = plan.engine->device();
  return device != nullptr && candidate.scheme != nullptr &&
         candidate.program.recombination == Recombination::weighted && !candidate.scheme->fits_residuals() &&
         device->fuses(candidate.program.schedule, candidate.program.format().id, candidate.accumulator,
                       entry_type(plan.problem));
}

bool sums_wrap(const Candidate& candidate, std::int64_t k) {
  return !candidate.program.format().floating &&
         std::isinf(error_bound(candidate.program, candidate.accumulator, k, true, true).relative);
}

Schedule schedule_of(const Problem& problem, const Candidate& candidate) {
  const Schedule& schedule = candidate.program.schedule;
  if (!is_tensor_core(candidate.accumulator)) return schedule;
  const double elements = static_cast<double>(problem.m) * static_cast<double>(problem.vectors_b());
  return schedule.shortened(elements, problem.products());
}

std::optional<Candidate> offered(const Plan& plan, const Scheme& scheme, const std::string& name) {
  if (!scheme.operands.contains(plan.problem.type)) return std::nullopt;
  Candidate candidate{&scheme, Accumulator::fp32, Candidate::any_span, fitted_program(plan, scheme)};
  if (candidate.program.recombination == Recombination::exact_sums) return candidate;
  const auto ways = accumulators_of(*plan.engine, candidate.program, entry_type(plan.problem));
  const auto found =
      name.empty() ? ways.begin() : std::find(ways.begin(), ways.end(), find_accumulator(name));
  if (found == ways.end()) return std::nullopt;
  candidate.accumulator = *found;
  candidate.program.schedule = schedule_of(plan.problem, candidate);
  return sums_wrap(candidate, plan.problem.products()) ? std::nullopt : std::optional(candidate);
}

std::vector<Candidate> proved_emulations(const Plan& plan, const std::string& accumulator, bool all,
                                         bool native_follows) {
  std::vector<Proved> proved;
  for (const Scheme* scheme : all_schemes()) {
    const auto candidate = offered(plan, with_window(*scheme, plan.problem.type), accumulator);
    if (!candidate || !(all || wins(plan, candidate->program))) continue;
    if (auto proof = prove(*candidate, plan.contract, plan.problem.type, plan.problem.products())) {
      proof->candidate.largest_depth = proved_depth(plan, *candidate);
      proved.push_back(*proof);
    }
  }
  // At equal cost the more accurate one goes first.
  const auto rank = [&](const Proved& p) {
    return std::pair(relative_cost(*plan.engine, p.candidate.program), p.coefficient);
  };
  std::stable_sort(proved.begin(), proved.end(),
                   [&](const Proved& x, const Proved& y) { return rank(x) < rank(y); });
  // A candidate that takes no more than one before it would never be reached.
  std::vector<Candidate> chain;
  for (const auto& [candidate, coefficient] : proved) {
    if (chain.empty() || candidate.largest_span > chain.back().largest_span) chain.push_back(candidate);
  }
  shorten(chain, *plan.engine, DeviceReport::most_candidates - (native_follows ? 1 : 0), native_follows);
  return chain;
}

std::optional<Candidate> quickest_at_depth(const Plan& plan, const std::string& accumulator) {
  constexpr int least_depth = 8;  // of elements like uniform numbers and normal deviates, and somewhat deeper
  std::optional<Candidate> quickest;
  for (const Scheme* scheme : all_schemes()) {
    const auto candidate = offered(plan, with_window(*scheme, plan.problem.type), accumulator);
    if (!candidate || !is_fused(plan, *candidate) || rescales(candidate->program.schedule)) continue;
    auto proof = prove(*candidate, plan.contract, plan.problem.type, plan.problem.products());
    if (!proof) continue;
    proof->candidate.largest_depth = proved_depth(plan, *candidate);
    if (proof->candidate.largest_depth < least_depth) continue;
    if (!quickest ||
        relative_cost(*plan.engine, candidate->program) < relative_cost(*plan.engine, quickest->program))
      quickest = proof->candidate;
  }
  return quickest;
}

std::optional<Candidate> proved_entries(const Plan& plan, const std::string& accumulator) {
  const auto candidate = offered(plan, with_window(schemes::ozaki2, plan.problem.type), accumulator);
  if (!candidate || !candidate->program.multiplies_entries()) return std::nullopt;
  const auto proof = prove(*candidate, plan.contract, plan.problem.type, plan.problem.products());
  return proof ? std::optional(proof->candidate) : std::nullopt;
}

// Moduli that norms prove, in a contract of the type most often: the first as many as entries of the type itself need, which
// are proved up to phi = 1, the next two more, for phi = 2 (docs/design/selection.md has what was found).
//
// The coefficient k + 8 forgives a long sum a coarse split, which a native product never has: with random signs it typically
// deviates by 0.15 u |a_i| |b_j|, however long it is. Grids of g <= 2^1.5 |a_i| 2^(-R / 2), whose roundings know nothing of each
// other, give E |AB - S|^2 <= k (g_i^2 |b_j|^2 + g_j^2 |a_i|^2) / 12 = 4/3 |a_i|^2 |b_j|^2 / 2^R, for any operands: below
// u / 16 |a_i| |b_j| for R = 2 (digits + 4) + 1. What a tolerance forgives is the caller's wish.
std::vector<Candidate> norm_emulations(const Plan& plan, const std::string& accumulator, int widest) {
  const DeviceEngine* device = plan.engine->device();
  const Contract& contract = plan.contract;
  if (device == nullptr || contract.checked_coefficient == 0) return {};
  const int digits =
      significant_bits(contract.accuracy == "fp32" ? OperandType::f32 : plan.problem.type, false);
  const int first = contract.is_of_type()
                        ? moduli_of(2 * (digits + 4) + 1, 1)
                        : moduli_of(5 - 2 * std::ilogb(contract.coefficient), plan.problem.products());
  if (first == 0) return {};
  std::vector<int> counts{first, first + 2};
  if (widest > first + 2) counts.push_back(widest);
  std::vector<Candidate> chain;
  for (const int count : counts) {
    auto candidate =
        offered(plan, *find_scheme(fmt::format("ozaki2:moduli={}:scale=norm", count)), accumulator);
    if (!candidate || !device->skips(candidate->program.schedule, candidate->program.format().id)) break;
    candidate->proved_by_norms = true;
    chain.push_back(*candidate);
  }
  return chain;
}

std::vector<Candidate> checked_emulations(const Plan& plan, const std::string& accumulator) {
  std::vector<Candidate> chain;
  for (const int bits : checked_bits(plan)) {
    if (is_few_long_sums(plan.problem)) break;
    const int count = moduli_of(2 * bits, plan.problem.products());
    const auto candidate =
        count == 0 ? std::nullopt
                   : offered(plan, *find_scheme(fmt::format("ozaki2:moduli={}", count)), accumulator);
    if (!candidate) break;
    if (chain.empty()) chain = norm_emulations(plan, accumulator, count + 1);
    chain.push_back(*candidate);
    chain.back().checked = true;
  }
  if (const auto last = offered(plan, schemes::superaccumulator, accumulator)) chain.push_back(*last);
  return chain;
}

Candidate in_larger_blocks(const Plan& plan, const Candidate& candidate) {
  if (is_fused(plan, candidate)) return candidate;
  const Scheme* scheme = candidate.scheme->parameters.starts_with("block=")
                             ? find_scheme(fmt::format("{}:block={}", candidate.scheme->name,
                                                       plan.engine->device()->preferred_block()))
                             : nullptr;
  if (scheme == nullptr) return candidate;
  const auto larger = offered(plan, *scheme, accumulator_name(candidate.accumulator));
  const auto proof =
      larger ? prove(*larger, plan.contract, plan.problem.type, plan.problem.products()) : std::nullopt;
  return proof && proof->candidate.largest_span >= candidate.largest_span ? proof->candidate : candidate;
}

std::int32_t largest_exponent(const Candidate& candidate, std::int64_t k) {
  if (candidate.scheme->adapt == nullptr) return Candidate::any_span;
  if (candidate.scheme->fits_residuals()) return candidate.program.format().max_exponent;
  const auto unchanged = [&](std::int32_t exponent) {
    Program program = candidate.program;
    RangeSummary summary;
    summary.largest = exponent;
    try {
      candidate.scheme->adapt(program, summary, summary, k);
    } catch (const Error&) {
      return false;
    }
    return program.split_a == candidate.program.split_a && program.split_b == candidate.program.split_b;
  };
  std::int32_t exponent = 127;
  while (exponent > -149 && !unchanged(exponent)) --exponent;
  if (unchanged(exponent)) return exponent;
  fail(Status::not_supported,
       "scheme {} is fitted to the operands' exponents, which the host does not know of matrices in device "
       "memory",
       candidate.scheme->name);
}

}  // namespace kintsugi::core
