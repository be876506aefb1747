// Expected times of a call on an engine of the host, and of a candidate on a device.
#pragma once

#include <optional>

#include "engines/cuda/steps.hpp"
#include "engines/engine.hpp"
#include "planner/plan.hpp"
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
// prepared operands take no time. `conditions`: with more threads each may be slower; the times are those of
// one. Precondition: the program recombines weighted sums or residues.
ExpectedTimes expected_times(const Engine& engine, const Program& program, const Problem& problem,
                             const CallConditions& conditions);

// Does the same by the given costs. Precondition: costs.product > 0.
ExpectedTimes expected_times(const StepCosts& costs, const NativeCosts& native, const Program& program,
                             const Problem& problem);

// Returns the expected time of one term of the program for one element of C, including the term's share of
// splits and recombination. The unit is that of ExpectedTimes.
double expected_term(const Engine& engine, const Program& program, const Problem& problem,
                     const CallConditions& conditions);
// Returns the expected time of all terms of a checked program for one element, and of the element's check.
double expected_check(const Engine& engine, const Program& program, const Problem& problem,
                      const CallConditions& conditions);

// Expected times of the exact sum of one element of C, in the unit of ExpectedTimes: if all elements are
// summed, and if it is one of few open elements, whose vectors are copied for it alone.
struct ExactSumTimes {
  double of_all;
  double of_open;
};
// `has_real_scalars`: alpha and beta of complex elements are known to be real, so that the host sums in two
// doubles (recombine/exact_sums.cpp), where superaccumulators take 40 times as long.
ExactSumTimes expected_exact_sums(const Engine& engine, const Problem& problem,
                                  bool has_real_scalars = false);

// True if exact sums of all elements are expected to take less time than `program`, the first of a checked
// chain. False for engines that have no kernels for sums in two doubles.
bool exact_sums_pay(const Engine& engine, const Program& program, const Problem& problem,
                    const CallConditions& conditions, bool has_real_scalars = false);

// Returns the expected times of a call that the candidate computes, on the plan's device. Returns nothing if
// the device's times, or the candidate's, were not measured. Precondition: no extent of the problem is 0.
std::optional<DeviceTimes> expected_device_times(const Plan& plan, const Candidate& candidate);

// Does the same for a call in which both operands have slices of the candidate already, or in which neither
// has, whatever the problem says.
enum class Slicing : bool { none_prepared, both_prepared };
std::optional<DeviceTimes> expected_device_times(const Plan& plan, const Candidate& candidate,
                                                 Slicing slicing);

// Does the same whatever layout, leading dimensions and hints are: for choices between emulations, whose bits
// may not depend on these.
std::optional<DeviceTimes> expected_times_in_any_layout(const Plan& plan, const Candidate& candidate);

// True if the candidate, which is not the first of its chain, is expected to take less time than the native
// candidate after it, or if no time is known. Prepared operands, leading dimensions and the problem's hints
// have no influence, since they must not change the bits of an emulated C.
bool precedes_native(const Plan& plan, const Candidate& candidate);

}  // namespace kintsugi::core
