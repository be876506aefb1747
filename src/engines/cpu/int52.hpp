// Products of 52-bit words. One of the kernel families runs the schedule tile by tile.
#pragma once

#include <span>

#include "engines/cpu/int52_kernels.hpp"
#include "engines/cpu/kernel_choice.hpp"
#include "engines/engine.hpp"

namespace kintsugi::core {

// Returns the families that this CPU can execute, fastest first. The last is int52_generic.
std::span<const Int52Kernels* const> int52_families();

// Returns the family that KINTSUGI_CPU_INT52 names, read at the first call.
const KernelChoice<Int52Kernels>& int52_choice();

// Scratch bytes of one thread.
std::size_t int52_worker_bytes(const Int52Kernels& kernels);

// Multiplies all tiles. Sums are modulo 2^128 inside and outside the engine; so neither blocks of k nor the
// order of additions changes them. Words that are zero in the whole tile are not multiplied.
void multiply_int52(const Multiplication& task, const Int52Kernels& kernels);

}  // namespace kintsugi::core
