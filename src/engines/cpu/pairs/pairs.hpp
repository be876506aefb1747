// Native products of double-double matrices.
#pragma once

#include <span>

#include "engines/cpu/pairs/pair_kernels.hpp"
#include "engines/engine.hpp"

namespace kintsugi::core {

// Returns the families that this CPU can execute, fastest first. All give the same bits.
std::span<const PairKernels* const> pair_families();
inline const PairKernels& fastest_pair_kernels() { return *pair_families().front(); }

// Computes C = alpha A B + beta C. Each element is summed in ascending order of k (arith/pair_sum.hpp).
void multiply_pairs(const NativeProduct<DoubleDouble>& task, const PairKernels& kernels);

}  // namespace kintsugi::core
