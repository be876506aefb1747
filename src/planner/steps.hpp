// The steps of a plan: what an execution does, in order. The planner writes the list once; execution
// interprets it on the host (execute/host/steps.cpp) or puts it into a queue (execute/device/steps.cpp).
// Workspace and description are read from the same list.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engines/fused_kernel.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns the steps of an execution with this blocking.
//
// The steps of a candidate are skipped on the host unless it is selected. In a queue they are launched, and
// their kernels exit early unless it is selected, since the device selects.
//
// A block of C has the steps split, multiply and recombine, the last two for each tile whose sums fit into
// memory. Where the engine has a fused kernel (engines/fused_kernel.hpp) that takes the candidate's product,
// the kernel's step replaces the steps that it covers: on the host all three, on a device multiply and
// recombine. This is the one rule by which kernels enter plans. On a device it holds for plans all of whose
// emulations have such a kernel (is_fused()); the emulations of other plans go through sums in memory.
std::vector<Step> make_steps(const Plan& plan, const Blocking& blocking);

// Returns a candidate's problem for fused kernels, with the program given, to which it refers: of C, or of a
// block of C of the given size.
FusedProblem fused_problem(const Plan& plan, const Candidate& candidate, const Program& program);
FusedProblem fused_problem(const Plan& plan, const Candidate& candidate, const Program& program,
                           const Blocking& blocking);

// Returns the engine's kernel that replaces steps of the candidate's blocks; nullptr if there is none. Throws
// `internal` if the kernel takes the product but lacks a function that it needs on the engine.
const FusedKernel* fused_kernel(const Plan& plan, const Candidate& candidate);

// Returns the engine's fused kernel for a checked candidate on the host; nullptr if there is none. Only
// contracts that allow no error have one: under others the check decides the bits of C.
const FusedKernel* fused_checked_kernel(const Plan& plan, const Candidate& candidate);

// Calls visit(step, body) for each loop, and visit(step, {}) for each other step, in order.
template <class Visit>
void for_each_step(std::span<const Step> steps, const Visit& visit) {
  for (std::size_t i = 0; i < steps.size(); i += 1 + static_cast<std::size_t>(steps[i].length))
    visit(steps[i], steps.subspan(i + 1, static_cast<std::size_t>(steps[i].length)));
}

// Returns one line for each step, with the names of candidates and kernels, indented within loops.
std::vector<std::string> step_lines(const Plan& plan);

// Properties of a plan that follow from its candidates.

// Candidates of the plan except the native product.
std::span<const Candidate> emulations(const Plan& plan);
// Candidates that multiply slices, in order: all but native and the superaccumulator.
std::span<const Candidate> product_candidates(const Plan& plan);
// Candidates that share kernels on a device (shares_kernels() of engines/cuda/steps.hpp): all that norms
// prove except the first, if they have successive numbers of moduli, native follows them, and the device has
// such kernels. Otherwise none: then every candidate has kernels of its own.
std::span<const Candidate> shared_candidates(const Plan& plan);
// True if candidates by norms of `least` to `most` moduli may share kernels in a plan of this problem. Their
// early exits then take the time of those of one candidate.
bool may_share_kernels(const Plan& plan, const Candidate& least, const Candidate& most);
// True if the plan has candidates that share kernels, and more than a DeviceReport counts. Its candidates are
// selected by cuda::select_by_norms() and counted in a LongDeviceReport.
bool has_long_chain(const Plan& plan);
// True if a device computes every emulation of the plan from slices to C in one kernel.
bool is_fused(const Plan& plan);
// True if the plan's only kernel converts operands while it multiplies: no step reads them before.
bool converts_inside(const Plan& plan);
// True if the superaccumulator computes all elements of C, without slices and products of an engine.
bool sums_exactly(const Plan& plan);
// True if the plan runs Ozaki scheme I. Such a plan has no other candidate.
bool is_ozaki1(const Plan& plan);
// True if a call on a device makes only one selection, and writes nothing to the report before the selection.
bool begins_with_selection(const Plan& plan);
// True if the contract allows errors. Then a product of magnitudes, a lower bound of |A||B|, can prove
// elements.
bool allows_error(const Plan& plan);
// Returns the number of vectors of op(B), which is also the number of columns of sums, for each column of C:
// two if the parts of complex elements are multiplied as real columns, else one.
std::int64_t vectors_per_column(const Plan& plan, const Candidate& candidate);
// Returns the coefficient of |A||B| that norms must prove for every element of C.
double proved_coefficient(const Plan& plan);

}  // namespace kintsugi::core
