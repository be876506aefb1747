// Native products under a contract.
#pragma once

#include "execute/execute.hpp"

namespace kintsugi::core {

// Computes C = alpha op(A) op(B) + beta C of one batch item in the engine's native arithmetic. Elements with
// unreliable sums are recomputed (recombine/check/native_check.hpp). Returns the number of recomputed
// elements. Uses 32 KiB of the stack, and native_scratch_bytes() of the workspace for a product in a fixed
// order.
template <class T>
std::int64_t multiply_natively(const Plan& plan, const Candidate& candidate, const Blocking& blocking,
                               const Operands& operands, std::int64_t item, Workspace& workspace);

}  // namespace kintsugi::core
