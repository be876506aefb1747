// Products of 52-bit words: the schedule tile by tile, by one of the families of kernels.
#pragma once

#include <span>

#include "engines/cpu/int52_kernels.hpp"
#include "engines/cpu/kernel_choice.hpp"
#include "engines/engine.hpp"

namespace kintsugi::core {

// The families that this CPU can execute, quickest first. The last is int52_generic.
std::span<const Int52Kernels* const> int52_families();

// What KINTSUGI_CPU_INT52 asks for, read at the first call.
const KernelChoice<Int52Kernels>& int52_choice();

// Scratch of one thread.
std::size_t int52_worker_bytes(const Int52Kernels& kernels);

// Sums are modulo 2^128, inside the engine and outside: neither blocks of k nor the order of anything makes a
// difference. Words of a tile that are all zero are not multiplied.
void multiply_int52(const Multiplication& task, const Int52Kernels& kernels);

}  // namespace kintsugi::core
