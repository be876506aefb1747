// Programs that a plan may select: those that the engine offers and that are proved for the contract.
#pragma once

#include <optional>
#include <vector>

#include "engines/device_engine.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Time of the program's products in units of the time of the engine's native FP32 product.
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

// Returns the scheme ozaki2 with that number of moduli and that rule of scales.
SchemeVariant ozaki2_variant(int moduli_count, ScaleRule scale);

// Returns the variant of a scheme that a fallback chain accepts by its window. ozaki2 sized for FP32 has
// almost no window, so for FP32 operands the default number of moduli is used; sized for FP64 it has one.
SchemeVariant with_window(const Scheme& scheme, OperandType type);

// Returns the scheme's program for the plan's problem and engine. Devices that do not multiply residues of
// complex elements multiply the residues of the embedding.
Program fitted_program(const Plan& plan, const SchemeVariant& variant);

// Accumulators by which the engine can add the program's products for elements of the type, the preferred one
// first. A tensor core's accumulator is offered on a device only where it has a kernel that adds partial sums
// outside the matrix unit as often as the schedule says.
std::vector<Accumulator> accumulators_of(const Engine& engine, const Program& program, ElementType type);

// Returns the schedule with the lengths that k-blocks and segments of k have in this problem.
Schedule schedule_of(const Problem& problem, const Candidate& candidate);

// True if one kernel of the device computes C from the slices.
bool is_fused(const Plan& plan, const Candidate& candidate);

// True if integer sums may wrap, which makes the program's results meaningless.
bool sums_wrap(const Candidate& candidate, std::int64_t k);

// Returns the scheme as a candidate for any dynamic range, with the accumulator that the caller named or else
// the engine's preferred one; nothing if the engine does not offer that.
std::optional<Candidate> offered(const Plan& plan, const SchemeVariant& variant);

// A proved emulation and the smallest coefficient of |A||B| that its bound reaches.
struct Proved {
  Candidate candidate;
  double coefficient;
};

// Returns the candidate with the widest dynamic range at which the program is proved to meet the contract;
// nothing if it is not proved at range 0 either. Under a contract of FP32 (FP64) the split must also keep the
// type's bits in every single product (9 u, the contract at k = 1), since the contract's growth with k would
// allow a coarse split whose error the native product never has.
std::optional<Proved> prove(const Plan& plan, const Candidate& candidate);

// Largest mean depth at which the candidate is proved to meet the contract, whatever the dynamic ranges are.
// The limit on every single product (prove()) is not needed here, since what elements lose to floors is
// absolute: 2^-24 per element of vectors scaled to norms of at least 2^14, in no order, is typically less
// than 2^-38 of the product of norms, from which a native product deviates by 2^-27.
int proved_depth(const Plan& plan, const Candidate& candidate);

struct EmulationFilter {
  bool all = false;             // else only emulations that are expected to be faster than a native product
  bool native_follows = false;  // native will be the last candidate
};

// Returns the emulations that are proved to meet the contract and pass the filter, cheapest first.
std::vector<Candidate> proved_emulations(const Plan& plan, EmulationFilter filter);

}  // namespace kintsugi::core
