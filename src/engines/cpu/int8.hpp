// Products of int8 slices: the schedule tile by tile, by one of the families of kernels.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engines/cpu/int8_kernels.hpp"
#include "engines/engine.hpp"

namespace kintsugi::core {

// The families that this CPU can execute, quickest first. The last is int8_generic.
std::span<const Int8Kernels* const> int8_families();

struct Int8Choice {
  const Int8Kernels* kernels = &int8_generic;
  std::string reason;  // why they are not those that were asked for; empty when they are
};

// By name; "auto" is the quickest.
Int8Choice choose_int8(std::string_view name);

// What KINTSUGI_CPU_INT8 asks for, read at the first call.
const Int8Choice& int8_choice();

// Scratch of one thread.
std::size_t int8_worker_bytes(const Int8Kernels& kernels);

// Sums inside the engine are modulo 2^32, so the order of terms, steps and tiles makes no difference to them.
void multiply_int8(const Multiplication& task, const Int8Kernels& kernels);

}  // namespace kintsugi::core
