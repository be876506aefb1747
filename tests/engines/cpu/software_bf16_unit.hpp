// The loop over pairs of bf16 panels with a matrix unit in software, for CPUs with AVX-512 and without AMX.
#pragma once

#include <cstddef>

#include "engines/cpu/bf16_panels.hpp"

namespace kintsugi::core {

// Adds the products of one step of a left and a right tile to 16 x 16 sums, as the model of the reference
// engine does.
void multiply_tiles_by_model(const std::byte* left, const std::byte* right, float* sums);

// Bf16Kernels::multiply by multiply_tiles_by_model().
void multiply_bf16_panels_by_model(const Bf16Products& task);

}  // namespace kintsugi::core
