// Candidates for contracts that no a-priori bound proves: residues whose elements are checked, or proved by
// norms.
#pragma once

#include <vector>

#include "planner/plan.hpp"

namespace kintsugi::core {

// Contracts that only checked programs meet: correct rounding, and FP64's and double-double's, whose integers
// are proved for narrow ranges alone; on a device all that its plain product, which takes what a window does
// not hold, does not meet. The last rounding must not break them.
bool asks_for_checks(const Plan& plan);

// Residues of few moduli, scaled by norms, on a device that skips the kernels of a candidate that is not
// selected. `widest`: moduli of a third one, where that is more than the others have.
std::vector<Candidate> norm_emulations(const Plan& plan, int widest = 0);

// Residues whose elements are checked, and the superaccumulator: for any dynamic range. On a device those of
// norms come before them.
std::vector<Candidate> checked_emulations(const Plan& plan);

}  // namespace kintsugi::core
