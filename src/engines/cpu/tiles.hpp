// Products of int8 slices with exponents per tile. They use the kernels of int8 slices.
#pragma once

#include "engines/cpu/int8_kernels.hpp"
#include "engines/engine.hpp"

namespace kintsugi::core {

// Scratch bytes of one thread.
std::size_t tiles_worker_bytes(const Int8Kernels& kernels);

// Computes the sums of all elements, as TileElement of engines/tile_element.hpp defines them.
void multiply_tiles(const Multiplication& task, const Int8Kernels& kernels);

}  // namespace kintsugi::core
