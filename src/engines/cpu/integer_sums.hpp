// Products of fp64 slices that hold integers, whose sums within a block of k are exact.
#pragma once

#include <cstddef>

#include "engines/engine.hpp"

namespace kintsugi::core {

// Scratch bytes of one thread.
std::size_t integer_sums_worker_bytes();

// Multiplies by OpenBLAS. Every partial sum of such a product is an integer that fp64 holds, so every order
// of additions gives the same sum.
void multiply_integer_sums(const Multiplication& task);

}  // namespace kintsugi::core
