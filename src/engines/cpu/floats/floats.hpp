// Products of floating slices. One of the kernel families runs the schedule tile by tile.
#pragma once

#include <cstddef>
#include <span>

#include "engines/cpu/floats/float_kernels.hpp"
#include "engines/engine.hpp"

namespace kintsugi::core {

// Returns the families that this CPU can execute, fastest first. All give the bits of the reference engine.
std::span<const FloatKernels* const> float_families();
inline const FloatKernels& fastest_float_kernels() { return *float_families().front(); }

// Products of slices of this format per unit of time, relative to OpenBLAS's FP32 product.
double float_rate(const FloatKernels& kernels, FormatId format);

// Scratch bytes of one thread.
std::size_t floats_worker_bytes(const Schedule& schedule);

// Multiplies all tiles. Slices must be stored in panels. Sums are 64-bit integers if the schedule has
// integer_sums, else FP32.
void multiply_floats(const Multiplication& task, const FloatKernels& kernels);

}  // namespace kintsugi::core
