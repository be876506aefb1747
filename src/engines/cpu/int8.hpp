// Products of int8 slices. One of the kernel families runs the schedule tile by tile.
#pragma once

#include <span>

#include "engines/cpu/int8_kernels.hpp"
#include "engines/cpu/kernel_choice.hpp"
#include "engines/engine.hpp"

namespace kintsugi::core {

// Returns the families that this CPU can execute, fastest first. The last is int8_generic.
std::span<const Int8Kernels* const> int8_families();

// Returns the family that KINTSUGI_CPU_INT8 names, read at the first call.
const KernelChoice<Int8Kernels>& int8_choice();

// Scratch bytes of one thread.
std::size_t int8_worker_bytes(const Int8Kernels& kernels);

// Multiplies all tiles. Sums inside the engine are modulo 2^32; so the order of terms, steps and tiles does
// not change them.
void multiply_int8(const Multiplication& task, const Int8Kernels& kernels);

}  // namespace kintsugi::core
