// Kernels for products of int8 slices: one family per file, each compiled with its own flags. This header
// holds plain data only: of an inline function in it, every family would compile a copy with its own flags,
// and the linker would keep one of them for all files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kintsugi::core {

// Vectors of a and of b, padded to Slices::vector_multiple, and the range of k whose products are added.
struct Int8Block {
  const std::int8_t* a;
  const std::int8_t* b;
  std::int64_t stride;  // elements from one vector to the next
  std::int64_t rows;    // vectors of a whose sums are needed, at most the kernels' tile
  std::int64_t columns;
  std::int64_t length;  // elements of each vector; none beyond are read
};

struct Int8Kernels {
  const char* name;

  // Products per unit of time relative to OpenBLAS's FP32 product: the rates in docs/results/log, rounded
  // down.
  double relative_rate;

  // Edge of the largest tile of sums, a power of two times Slices::vector_multiple.
  std::int64_t tile;

  // Bytes of add_product()'s scratch memory `packed`.
  std::size_t packed_bytes;

  // Adds a * b^T to `sums`, a column-major tile x tile array, modulo 2^32; at least for the first rows x
  // columns of its elements.
  void (*add_product)(const Int8Block& block, std::byte* packed, std::uint32_t* sums);
};

extern const Int8Kernels int8_generic;
extern const Int8Kernels int8_avx512;  // x86-64 only
extern const Int8Kernels int8_amx;     // x86-64 Linux only

}  // namespace kintsugi::core
