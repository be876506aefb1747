// The fallback chain of the accuracy `reproducible`: bits of C that depend on operands and scalars alone.
//
//   a' = RN(2^s_i a)  with max_p |a'_ip| < 2^51 - 2^44          likewise the columns of B
//   C  = RN(alpha 2^-(s_i + t_j) sum over p of a'_ip b'_pj + beta C)      exact but for this rounding
//
// The integers and the rounding are the same for both schemes: words of 52 bits (int52) and residues
// (ozaki2). The exponents of its row of A and column of B decide for each element of C whether this grid
// keeps the contract of the operands' type. If it does not, the element is correctly rounded, which gives the
// same bits by every program.
#pragma once

#include <vector>

#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns a candidate on the grid, followed by the candidates of `exact`. The grid's scheme is the named one
// (int52 or ozaki2), or the one that is faster on the engine. Double-double operands have only the candidates
// of `exact`. Fails with contract_unreachable under the policy native or with another scheme, and with
// not_supported on a device.
std::vector<Candidate> reproducible_candidates(const Plan& plan);

}  // namespace kintsugi::core
