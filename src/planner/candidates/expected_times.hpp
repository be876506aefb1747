// Time that a call is expected to take on an engine of the host.
#pragma once

#include "engines/engine.hpp"
#include "planner/problem.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core {

// Expected times of one batch item on one thread. Unit: time per multiplied pair of elements in the engine's
// native FP32 product of large matrices.
struct ExpectedTimes {
  double emulated;
  double native;
};

// Returns the expected times of the emulation (ranges, splits, products, recombination, rounding) and of the
// native product in the problem's own arithmetic. Precondition: the program recombines weighted sums or
// residues. Products count in whole tiles of the engine, to which slices are padded. Ranges and slices of
// prepared operands take no time.
ExpectedTimes expected_times(const Engine& engine, const Program& program, const Problem& problem);

// Returns the expected time of one term of the program for one element of C, with its share of splits and
// recombination, in the units of ExpectedTimes.
double expected_term(const Engine& engine, const Program& program, const Problem& problem);
// Returns the expected time of the exact sum of one element of C, in the same units.
double expected_exact_sum(const Problem& problem);

}  // namespace kintsugi::core
