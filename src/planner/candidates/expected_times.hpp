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

// Expected times of the program, which has weighted sums or residues (ranges, splits, products, recombination
// and rounding), and of the native product in the problem's own arithmetic. Slices and their products are
// padded to whole tiles of the engine. Prepared operands already have ranges and slices.
ExpectedTimes expected_times(const Engine& engine, const Program& program, const Problem& problem);

// Expected time of one element of C, in the units of ExpectedTimes: one term of the program with its share of
// the splits and of the recombination; and an exact sum of products, at ten to twelve nanoseconds a product
// on CPUs of about 70 GFLOP/s in FP32.
double expected_term(const Engine& engine, const Program& program, const Problem& problem);
double expected_exact_sum(const Problem& problem);

}  // namespace kintsugi::core
