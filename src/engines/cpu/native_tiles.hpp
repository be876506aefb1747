// Native products in a fixed order. They use OpenBLAS, but their bits depend on shape and operands alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/engine.hpp"

namespace kintsugi::core {

// Scratch bytes of a product with m rows, n columns and sums of k products. Elements are reals; a complex
// matrix counts with the shape of its embedding (base/embedding.hpp). There is memory for one worker per
// tile, but at most `threads` workers.
std::size_t native_tiles_bytes(std::size_t real_bytes, std::int64_t m, std::int64_t n, std::int64_t k,
                               int threads);

// Compute C. task.scratch must hold at least the bytes of one worker.
void multiply_in_tiles(const NativeProduct<float>& task);
void multiply_in_tiles(const NativeProduct<double>& task);
void multiply_in_tiles(const NativeProduct<std::complex<float>>& task);
void multiply_in_tiles(const NativeProduct<std::complex<double>>& task);

}  // namespace kintsugi::core
