// How long a call is expected to take on an engine of the host.
#pragma once

#include "engines/engine.hpp"
#include "planner/problem.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core {

// Of one batch item and one thread, in products of elements of the engine's native FP32 product of
// large matrices.
struct ExpectedTimes {
  double emulated;
  double native;
};

// Ranges, splits, products, recombination and rounding of the program, which has weighted sums or residues;
// and the native product in the problem's own arithmetic. Slices are padded to whole tiles of the engine, and
// so are their products. Prepared operands have ranges and slices.
ExpectedTimes expected_times(const Engine& engine, const Program& program, const Problem& problem);

// In the same units, of one element of C: one term of the program, with its part of the splits and of the
// recombination; and an exact sum of products, ten to twelve nanoseconds a product on CPUs of some 70 GFLOP/s
// in FP32.
double expected_term(const Engine& engine, const Program& program, const Problem& problem);
double expected_exact_sum(const Problem& problem);

}  // namespace kintsugi::core
