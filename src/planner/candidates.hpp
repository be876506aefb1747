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
// outside the matrix unit as often as the schedule demands.
std::vector<Accumulator> accumulators_of(const Engine& engine, const Program& program, ElementType type);

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

struct EmulationFilter {
  bool include_slower = false;  // false: only emulations that are expected to be faster than a native product
  bool native_follows = false;  // true: the native product will be the last candidate
};

// Returns the emulations that are proved to meet the contract and pass the filter, cheapest first. On a
// device those with exponents per tile are not among them: whether one of them pays depends on the shape
// (planner/choice.cpp).
std::vector<Candidate> proved_emulations(const Plan& plan, EmulationFilter filter);

}  // namespace kintsugi::core
