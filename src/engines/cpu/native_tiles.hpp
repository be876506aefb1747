// Native products in a fixed order: OpenBLAS's arithmetic, with bits that depend on shape and operands only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/engine.hpp"

namespace kintsugi::core {

// Scratch bytes of a product of m rows and n columns of reals (for a complex matrix, of its embedding:
// base/embedding.hpp) with sums of k products: memory for as many workers as there are tiles, at most
// `threads`.
std::size_t native_tiles_bytes(std::size_t real_bytes, std::int64_t m, std::int64_t n, std::int64_t k,
                               int threads);

// Compute C; task.scratch has at least the bytes of one worker.
void multiply_in_tiles(const NativeProduct<float>& task);
void multiply_in_tiles(const NativeProduct<double>& task);
void multiply_in_tiles(const NativeProduct<std::complex<float>>& task);
void multiply_in_tiles(const NativeProduct<std::complex<double>>& task);

}  // namespace kintsugi::core
