// Kernels for products of int8 slices. Each family is in a file of its own, compiled with its own flags. This
// header holds plain data only. If it had an inline function, every family would compile a copy with its own
// flags, and the linker would keep one of the copies for all files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kintsugi::core {

// Vectors of a and of b, padded to Slices::vector_multiple, and the range of k over which products are added.
struct Int8Block {
  const std::int8_t* a;
  const std::int8_t* b;
  std::int64_t stride;  // elements from one vector to the next
  std::int64_t rows;    // vectors of a whose sums are needed, at most the kernels' tile
  std::int64_t columns;
  std::int64_t length;  // elements of each vector; the kernels read no others
};

struct Int8Kernels {
  const char* name;

  // Products per unit of time relative to OpenBLAS's FP32 product. The values are rates in lab/results/log,
  // rounded down.
  double relative_rate;

  // Edge of the largest tile of sums, a power of two times Slices::vector_multiple.
  std::int64_t tile;

  // Bytes of add_product()'s scratch memory `packed`.
  std::size_t packed_bytes;

  // Adds a * b^T modulo 2^32 to `sums`, a column-major array of tile x tile elements. May leave out elements
  // outside the first `rows` rows and `columns` columns.
  void (*add_product)(const Int8Block& block, std::byte* packed, std::uint32_t* sums);
};

extern const Int8Kernels int8_generic;
extern const Int8Kernels int8_avx512;  // x86-64 only
extern const Int8Kernels int8_amx;     // x86-64 Linux only

}  // namespace kintsugi::core
