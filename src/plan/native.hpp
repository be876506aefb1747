// Native products under a contract.
#pragma once

#include "plan/execute.hpp"

namespace kintsugi::core {

// C = alpha op(A) op(B) + beta C of one batch item in the engine's native arithmetic, where underflow and intermediate
// overflow do no harm, and elements computed again where they do (recombine/native_check.hpp). Takes no memory but a tile
// on the stack. Returns how many elements of C were computed again.
template <class T>
std::int64_t multiply_natively(const Plan& plan, const Operands& operands, std::int64_t item);

}  // namespace kintsugi::core
