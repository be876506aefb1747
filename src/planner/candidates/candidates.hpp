// Programs that a plan may select: those that the engine offers and that are proved for the contract.
#pragma once

#include <optional>
#include <vector>

#include "engines/device_engine.hpp"
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

// Returns the variant of a scheme that a fallback chain uses, which accepts operands by its window. The
// scheme ozaki2 takes its number of moduli from the operands' type, and with the number for FP32 it has
// almost no window; therefore the variant for FP32 operands has the number for FP64.
SchemeVariant with_window(const Scheme& scheme, OperandType type);

// Returns the scheme's program for the plan's problem and engine. A device that does not multiply residues of
// complex elements multiplies the residues of the embedding.
Program fitted_program(const Plan& plan, const SchemeVariant& variant);

// Returns the accumulators by which the engine can add the program's products for elements of the type, the
// preferred one first. A device offers the accumulator of its tensor cores only if it has a kernel that adds
// partial sums outside the matrix unit as often as the schedule says.
std::vector<Accumulator> accumulators_of(const Engine& engine, const Program& program, ElementType type);

// Returns the candidate's schedule with the lengths that k-blocks and segments of k have in this problem.
Schedule schedule_of(const Problem& problem, const Candidate& candidate);

// True if one kernel of the device computes C from the slices.
bool is_fused(const Plan& plan, const Candidate& candidate);

// True if integer sums may wrap, which makes the program's results meaningless.
bool sums_wrap(const Candidate& candidate, std::int64_t k);

// Returns the scheme as a candidate that accepts any dynamic range, with the accumulator that the caller
// named or else the engine's preferred one. Returns nothing if the engine does not offer the scheme with that
// accumulator.
std::optional<Candidate> offered(const Plan& plan, const SchemeVariant& variant);

// An emulation that is proved to meet the contract.
struct Proved {
  Candidate candidate;
  double coefficient;  // smallest coefficient of |A||B| that the program's bound reaches
};

// Returns the candidate with the widest dynamic range at which the program is proved to meet the contract;
// nothing if it is not even proved at range 0. Under a contract of FP32 (FP64) the split must also keep the
// type's bits in every single product (9 u, the contract at k = 1): a contract that grows with k would allow
// a coarse split with errors that a native product never has.
std::optional<Proved> prove(const Plan& plan, const Candidate& candidate);

// Returns the largest mean depth at which the candidate is proved to meet the contract, whatever the dynamic
// ranges are. prove() also limits the loss in every single product. That is not needed here, since the loss
// of elements at great depth is a floor, which is absolute: vectors scaled to norms of at least 2^14 lose
// 2^-24 per element with signs in no order, typically less than 2^-38 of the product of norms, and a native
// product deviates by 2^-27 of it.
int proved_depth(const Plan& plan, const Candidate& candidate);

struct EmulationFilter {
  bool include_slower = false;  // false: only emulations that are expected to be faster than a native product
  bool native_follows = false;  // true: the native product will be the last candidate
};

// Returns the emulations that are proved to meet the contract and pass the filter, cheapest first.
std::vector<Candidate> proved_emulations(const Plan& plan, EmulationFilter filter);

}  // namespace kintsugi::core
