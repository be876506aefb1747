// Native products in a fixed order: OpenBLAS's arithmetic, but bits that depend on shape and operands alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/engine.hpp"

namespace kintsugi::core {

// Bytes of scratch of a product of m rows and n columns of reals (of a complex matrix's embedding, as in
// base/embedding.hpp) with sums of k products: of as many workers as it has tiles, at most `threads`.
std::size_t native_tiles_bytes(std::size_t real_bytes, std::int64_t m, std::int64_t n, std::int64_t k,
                               int threads);

// task.scratch holds one worker at least.
void multiply_in_tiles(const NativeProduct<float>& task);
void multiply_in_tiles(const NativeProduct<double>& task);
void multiply_in_tiles(const NativeProduct<std::complex<float>>& task);
void multiply_in_tiles(const NativeProduct<std::complex<double>>& task);

}  // namespace kintsugi::core
