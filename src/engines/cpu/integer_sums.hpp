// Products of fp64 slices that hold integers (Ozaki scheme I). Their sums over a block of k are exact.
#pragma once

#include <cstddef>

#include "engines/engine.hpp"

namespace kintsugi::core {

// Scratch bytes of one thread.
std::size_t fp64_integers_worker_bytes();

// Multiplies by OpenBLAS. Every partial sum is an integer that FP64 holds exactly; so every order of
// additions gives the same sum.
void multiply_fp64_integers(const Multiplication& task);

}  // namespace kintsugi::core
