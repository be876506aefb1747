// Candidates for contracts that no a-priori bound proves. They multiply residues; norms prove all elements of
// the result beforehand, or every element is checked afterwards.
#pragma once

#include <vector>

#include "planner/plan.hpp"

namespace kintsugi::core {

// True if only checked programs meet the contract. That holds for correct rounding; for the contracts of FP64
// and double-double, since their integers are proved at narrow dynamic ranges alone; and on a device for all
// contracts that native does not meet, since candidates with windows need native after them. False for a
// contract below the error of the last rounding, which no program meets.
bool needs_checks(const Plan& plan);

// True if the fallback chain can consist of FP64 candidates that norms prove and a native kernel of the
// engine that is as fast as the vendor library's, on a device, under a contract that native products meet. No
// element has to be checked then.
bool has_native_fallback(const Plan& plan);

// Returns two candidates by residues of few moduli, which norms scale and prove; none unless the device's
// kernels exit early if their candidate is not selected. A third candidate follows if `third_moduli` is more
// than the number of moduli of the second.
std::vector<Candidate> norm_emulations(const Plan& plan, int third_moduli = 0);

// Returns the candidates whose elements are checked, and after them the superaccumulator. They accept any
// dynamic range. On a device the candidates that norms prove come first.
std::vector<Candidate> checked_emulations(const Plan& plan);

}  // namespace kintsugi::core
