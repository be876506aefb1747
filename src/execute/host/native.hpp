// Native products in host memory.
#pragma once

#include "execute/execute.hpp"

namespace kintsugi::core {

// Computes C = alpha op(A) op(B) + beta C of one batch item in the engine's native arithmetic, which keeps
// the contract of its type (docs/design/bounds.md). Uses native_scratch_bytes() of the workspace for a
// product in a fixed order.
template <class T>
void multiply_natively(const Plan& plan, const Candidate& candidate, const Blocking& blocking,
                       const Operands& operands, std::int64_t item, Workspace& workspace);

}  // namespace kintsugi::core
