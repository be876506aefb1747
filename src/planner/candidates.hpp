// Finds the programs that a plan may select: the engine offers them, and they are proved for the contract.
#pragma once

#include <optional>
#include <vector>

#include "engines/cuda/steps.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns the time of the program's products, in units of the time of the engine's native FP32 product.
double relative_cost(const Engine& engine, const Program& program);

// A scheme with parameters that the plan sets.
struct SchemeVariant {
  SchemeVariant(const Scheme& unchanged) : scheme(&unchanged), program(unchanged.program) {}
  SchemeVariant(const Scheme* changed, const Program& new_program, const SchemeParameters& new_parameters)
      : scheme(changed), program(new_program), parameters(new_parameters) {}

  const Scheme* scheme;
  Program program;
  SchemeParameters parameters{};
};

// Returns the scheme ozaki2 with that number of moduli and that scale rule.
SchemeVariant ozaki2_variant(int moduli_count, ScaleRule scale);

// Returns the variant of a scheme for a fallback chain, where operands are accepted by the scheme's window.
// With the number of moduli for FP32, the scheme ozaki2 has almost no window. Therefore its variant for FP32
// operands has the number of moduli for FP64.
SchemeVariant with_window(const Scheme& scheme, OperandType type);

// Returns the scheme's program for the plan's problem and engine. A device that does not multiply residues of
// complex elements multiplies the residues of the embedding.
Program fitted_program(const Plan& plan, const SchemeVariant& variant);

// Returns the accumulators with which the engine can run the program for elements of the type, the preferred
// one first. A device offers the accumulator of its tensor cores only if one of its kernels adds partial sums
// outside the matrix unit as often as the schedule demands. `is_named`: the caller names the scheme; then the
// kernel may be one that is compiled at its first use.
std::vector<Accumulator> accumulators_of(const Engine& engine, const Program& program, ElementType type,
                                         bool is_named = false);

// Returns the candidate's schedule with the lengths of k-blocks and tiles that this problem has.
Schedule schedule_of(const Problem& problem, const Candidate& candidate);

// True if integer sums may wrap, which makes the program's results meaningless.
bool sums_wrap(const Candidate& candidate, std::int64_t k);

// Returns the scheme as a candidate that accepts all dynamic ranges. Its accumulator is the one that the
// caller named, or the engine's preferred one. Returns nothing if the engine does not offer the scheme with
// this accumulator.
std::optional<Candidate> offered(const Plan& plan, const SchemeVariant& variant);

// An emulation that is proved to meet the contract.
struct Proved {
  Candidate candidate;
  double coefficient;  // smallest coefficient of |A||B| that the program's bound reaches
};

// Returns the candidate with the widest dynamic range for which the program is proved to meet the contract;
// nothing if the program is not proved even for range 0. Under a contract of FP32 or FP64 the split may lose
// at most 9 u in each single product, the contract at k = 1. Without this limit, the contract for large k
// would allow coarse splits, whose errors a native product never has.
std::optional<Proved> prove(const Plan& plan, const Candidate& candidate);

// Returns the largest mean depth for which the candidate is proved to meet the contract, whatever the dynamic
// ranges are. Unlike prove(), this function does not limit the loss in each single product. Elements at great
// depth lose a floor, which is absolute: 2^-24 per element of vectors that are scaled to norms of at least
// 2^14. The signs of these losses are random, so the sum of losses is typically below 2^-38 of the product of
// the norms. A native product deviates by 2^-27 of it.
int proved_depth(const Plan& plan, const Candidate& candidate);

// True if the emulation is expected to be faster on the host than the native product, by more than
// measurements scatter.
bool is_expected_faster(const Plan& plan, const Program& program);

struct EmulationFilter {
  bool include_slower = false;  // false: only emulations that are expected to be faster than a native product
  bool native_follows = false;  // true: the native product will be the last candidate
};

// Returns the emulations that are proved to meet the contract and pass the filter, cheapest first. On a
// device those with exponents per tile are not among them: whether one of them pays depends on the shape
// (planner/choice.cpp).
std::vector<Candidate> proved_emulations(const Plan& plan, EmulationFilter filter);

// ---------------------------------------------------------------- a named scheme

// Returns the named scheme as a candidate that accepts all operands. Fails with bad_setting if no scheme has
// the name, and with not_supported if the operands or the engine do not allow the scheme.
Candidate named_candidate(const Plan& plan);

// Returns the largest exponent of operands for which a device can run the scheme. A device cannot change the
// program to fit the operands' ranges, so the scheme's `adapt` must leave the program unchanged for operands
// up to this exponent. (The one change that a device makes is to fit residuals, Scheme::fitted_groups.) Fails
// with not_supported if `adapt` changes the program for all operands.
std::int32_t largest_exponent(const Candidate& candidate, std::int64_t k);

// ---------------------------------------------------------------- residues

// Candidates for contracts that no a-priori bound proves. They multiply residues. Either norms prove all
// elements of C before the product, or every element is checked after it.

// True if only checked programs meet the contract:
// - correct rounding,
// - the contracts of FP64 and double-double, since programs for them are proved only for narrow dynamic
//   ranges,
// - on a device, every contract that native does not meet, since a chain of candidates with windows must end
//   with native.
// False for a tolerance below the error of the last rounding, which no program meets.
bool needs_checks(const Plan& plan);

// True if no element needs a check because the fallback chain can consist of candidates that norms prove,
// followed by native. That holds for FP64 on a device whose own native kernel is as fast as the vendor
// library's, under a contract that native meets.
bool has_native_fallback(const Plan& plan);

// Returns candidates by residues of few moduli, which norms scale and prove. There are none on a device
// unless its kernels exit early if their candidate is not selected. On the host they are for the contracts of
// real FP32 and FP64 elements; for FP32 int8x6, which norms prove, too, is the first. `more_moduli` has, for
// each candidate, how many moduli it has besides the least number.
std::vector<Candidate> norm_emulations(const Plan& plan, const std::vector<int>& more_moduli = {0, 2});

// Returns the checked candidates followed by the superaccumulator. All accept any dynamic range. On a device,
// candidates that norms prove precede them.
std::vector<Candidate> checked_emulations(const Plan& plan);

// ---------------------------------------------------------------- reproducible

// The fallback chain of the accuracy `reproducible`: bits of C that depend on operands and scalars alone.
//
//   a' = RN(2^s_i a)  with max_p |a'_ip| < 2^51 - 2^44          likewise the columns of B
//   C  = RN(alpha 2^-(s_i + t_j) sum over p of a'_ip b'_pj + beta C)      exact but for this rounding
//
// The integers and the rounding are the same for both schemes: words of 52 bits (int52) and residues
// (ozaki2). The exponents of its row of A and column of B decide for each element of C whether this grid
// keeps the contract of the operands' type. If it does not, the element is correctly rounded, which gives the
// same bits by every program.

// Returns a candidate on the grid, followed by the candidates of `exact`. The grid's scheme is the named one
// (int52 or ozaki2), or the one that is faster on the engine. Double-double operands have only the candidates
// of `exact`. Fails with contract_unreachable under the policy native or with another scheme, and with
// not_supported on a device.
std::vector<Candidate> reproducible_candidates(const Plan& plan);

// ---------------------------------------------------------------- the choice

// Sets the plan's candidates, and the one for operands that are prepared: the one place that decides which
// programs a plan runs, on the host and on devices, for every accuracy and policy.
//
// Eligible are the programs that the engine offers and that are proved to meet the contract
// (planner/candidates.hpp, planner/candidates.hpp), and the native product if its arithmetic meets
// it. The chain begins with the cheapest. Under the policy automatic it has emulations only if the first is
// expected to take less time than the native product (planner/expected_times.hpp), by a margin above the
// scatter of measurements. All limits are in planner/limits.hpp.
//
// Fails with contract_unreachable if nothing is eligible, and as named_candidate() and
// reproducible_candidates() do.
void choose_candidates(Plan& plan);

}  // namespace kintsugi::core
