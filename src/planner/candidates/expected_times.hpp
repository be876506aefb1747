// Expected times of a call on an engine of the host.
#pragma once

#include "engines/engine.hpp"
#include "planner/problem.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core {

// Expected times of one batch item on one thread. The unit is the time of one multiplication in the engine's
// native FP32 product of large matrices.
struct ExpectedTimes {
  double emulated;
  double native;
};

// Returns the expected times of the emulation (ranges, splits, products, recombination, rounding) and of the
// native product. The time of products counts whole tiles, to which slices are padded. Ranges and slices of
// prepared operands take no time. Precondition: the program recombines weighted sums or residues.
ExpectedTimes expected_times(const Engine& engine, const Program& program, const Problem& problem);

// Returns the expected time of one term of the program for one element of C, including the term's share of
// splits and recombination. The unit is that of ExpectedTimes.
double expected_term(const Engine& engine, const Program& program, const Problem& problem);
// Returns the expected time of the exact sum of one element of C. The unit is that of ExpectedTimes.
double expected_exact_sum(const Problem& problem);

}  // namespace kintsugi::core
