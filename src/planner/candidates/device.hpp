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

// Changes the plan's candidates that norms prove to products by Strassen's algorithm, if these are expected
// to take less time. No bit of C changes. Candidates are unchanged if operands are prepared, since slices
// of prepared operands are not divided, if lines of A or B are not aligned, and if the workspace would not
// hold the slices of whole operands.
void multiply_by_strassen_if_faster(Plan& plan);

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
