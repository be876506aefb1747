// The fallback chain of a device for contracts that need no check of elements: its candidates, those that
// share kernels (engines/cuda/select/selected_moduli.hpp), and those whose products of residues take one step of
// Strassen's algorithm (arith/residue/strassen.hpp).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns the candidates that share kernels: all that norms prove except the first, if they have successive
// numbers of moduli, native follows them, and the device has such kernels. Otherwise nothing: then every
// candidate has kernels of its own.
std::span<const Candidate> shared_candidates(const Plan& plan);

// True if the plan has candidates that share kernels, and more than a DeviceReport counts. Its candidates are
// selected by cuda::select_by_norms() and counted in a LongDeviceReport.
bool has_long_chain(const Plan& plan);

// True if candidates by norms of `least` to `most` moduli may share kernels in a plan of this problem. Their
// early exits then take the time of those of one candidate.
bool may_share_kernels(const Plan& plan, const Candidate& least, const Candidate& most);

// Changes the plan's candidates that norms prove to products by Strassen's algorithm, if these are expected
// to take less time. No bit of C changes. Candidates are unchanged if operands are prepared, since slices
// of prepared operands are not divided, if lines of A or B are not aligned, and if the workspace would not
// hold the slices of whole operands.
void multiply_by_strassen_if_faster(Plan& plan);

// True if a candidate takes a step of Strassen's algorithm.
bool multiplies_by_strassen(const Plan& plan);

// Returns the plan without such steps. It needs less workspace, and C has the same bits.
Plan without_strassen(Plan plan);

struct DeviceFallbackChain {
  std::vector<Candidate> candidates;
  std::optional<Candidate> candidate_when_prepared;  // Plan::candidate_when_prepared
};

// Returns the emulations that the policy allows, followed by the native product. The policy automatic allows
// emulations only if they are expected to be faster than native by a margin above the scatter of
// measurements. Precondition: the native product meets the contract.
DeviceFallbackChain device_candidates(const Plan& plan);

}  // namespace kintsugi::core
