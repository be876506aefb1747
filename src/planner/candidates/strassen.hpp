// Candidates whose products of residues take one step of Strassen's algorithm (arith/residue/strassen.hpp).
#pragma once

#include "planner/plan.hpp"

namespace kintsugi::core {

// Changes the plan's candidates that norms prove to products by Strassen's algorithm, if these are expected
// to take less time. No bit of C changes. Candidates are unchanged if operands are prepared, since slices
// of prepared operands are not divided, if lines of A or B are not aligned, and if the workspace would not
// hold the slices of whole operands.
void multiply_by_strassen_if_faster(Plan& plan);

// True if a candidate takes a step of Strassen's algorithm.
bool multiplies_by_strassen(const Plan& plan);

// Returns the plan without such steps. It needs less workspace, and C has the same bits.
Plan without_strassen(Plan plan);

}  // namespace kintsugi::core
