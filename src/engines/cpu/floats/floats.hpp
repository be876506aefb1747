// Products of floating slices: the schedule tile by tile, by one of the kernel families.
#pragma once

#include <cstddef>
#include <span>

#include "engines/cpu/floats/float_kernels.hpp"
#include "engines/engine.hpp"

namespace kintsugi::core {

// Returns the families that this CPU can execute, fastest first. All give the bits of the reference engine.
std::span<const FloatKernels* const> float_families();
inline const FloatKernels& fastest_float_kernels() { return *float_families().front(); }

// Products of slices of that format per unit of time, relative to OpenBLAS's FP32 product.
double float_rate(const FloatKernels& kernels, FormatId format);

// Scratch bytes of one thread.
std::size_t floats_worker_bytes(const Schedule& schedule);

// Multiplies all tiles. Slices are stored in panels; of schedules with integer_sums the sums are 64-bit
// integers.
void multiply_floats(const Multiplication& task, const FloatKernels& kernels);

}  // namespace kintsugi::core
