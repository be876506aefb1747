// Programs that a plan may choose from: what the engine offers, what is proved for the contract.
#pragma once

#include <optional>
#include <vector>

#include "engines/device_engine.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Time of the program's products in units of the engine's native FP32 product.
double relative_cost(const Engine& engine, const Program& program);

// A scheme with the parameters that a plan sets by itself.
struct SchemeVariant {
  SchemeVariant(const Scheme& of) : scheme(&of), program(of.program) {}
  SchemeVariant(const Scheme* of, const Program& with, const SchemeParameters& set)
      : scheme(of), program(with), parameters(set) {}

  const Scheme* scheme;
  Program program;
  SchemeParameters parameters{};
};

// The scheme ozaki2 with that many moduli and that rule of scales.
SchemeVariant residues(int count, ScaleRule scale);

// What a fallback chain of windows has of a scheme: residues by as many moduli as an FP32 number asks for
// hardly have a window, those of an FP64 number do.
SchemeVariant with_window(const Scheme& scheme, OperandType type);

// The program for the problem and its engine. Devices that do not multiply residues of complex elements take
// those of the embedding.
Program fitted_program(const Plan& plan, const SchemeVariant& variant);

// How the engine can add the program's products for elements of that type, its preferred way first. A device
// adds as a tensor core does where it has a kernel that lets its sums go when the schedule says so.
std::vector<Accumulator> accumulators_of(const Engine& engine, const Program& program, ElementType type);

// The schedule with the lengths that blocks and segments of k have in this problem.
Schedule schedule_of(const Problem& problem, const Candidate& candidate);

// Whether a device goes from slices to C in one step.
bool is_fused(const Plan& plan, const Candidate& candidate);

// Whether integer sums may wrap: a program then gives anything.
bool sums_wrap(const Candidate& candidate, std::int64_t k);

// The scheme as a candidate for any dynamic range, with the accumulator that was asked for or else the
// engine's preferred one; nothing where the engine does not offer that.
std::optional<Candidate> offered(const Plan& plan, const SchemeVariant& variant);

// An emulation that is proved, and its coefficient of |A||B| at best.
struct Proved {
  Candidate candidate;
  double coefficient;
};

// The widest span at which the program is proved to meet the contract; nothing: not even at 0. What stands
// for FP32 (FP64) must also keep its bits in every single product (9 u, the contract at k = 1): a long sum
// would forgive a coarse split that the native product never has.
std::optional<Proved> prove(const Plan& plan, const Candidate& candidate);

// The largest depth at which it is proved to meet the contract, whatever single elements span. What elements
// lose to floors is no part of themselves, and forgiven by no long sum: a fraction of 2^-24 of scaled vectors
// whose norms are 2^14 at least, in no order, typically is less than 2^-38 of the product of norms, of which
// a native product deviates by 2^-27.
int proved_depth(const Plan& plan, const Candidate& candidate);

// Emulations that are proved to meet the contract, cheapest first; only those that win against a native
// product, unless all are wanted. `native_follows`: as the last candidate.
std::vector<Candidate> proved_emulations(const Plan& plan, bool all, bool native_follows);

}  // namespace kintsugi::core
