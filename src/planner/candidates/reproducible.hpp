// The fallback chain of the accuracy `reproducible`: bits of C that depend on operands and scalars alone.
//
//   a' = RN(2^s_i a)  with max_p |a'_ip| < 2^51 - 2^44          likewise the columns of B
//   C  = RN(alpha 2^-(s_i + t_j) sum over p of a'_ip b'_pj + beta C)      exact but for this rounding
//
// The integers and the rounding are the same whether words of 52 bits (int52) or residues (ozaki2) multiply.
// An element of C is the correctly rounded one, which has the same bits by every program, where the exponents
// of its row of A and its column of B do not prove that this grid keeps the contract of the operands' type.
#pragma once

#include <vector>

#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns a candidate on the grid, by the scheme that was named (int52 or ozaki2) or the one that is faster
// on the engine, and after it the candidates of `exact`. Double-double operands have the candidates of
// `exact` alone. Fails with contract_unreachable under the policy native or with another scheme, and with
// not_supported on a device.
std::vector<Candidate> reproducible_candidates(const Plan& plan);

}  // namespace kintsugi::core
