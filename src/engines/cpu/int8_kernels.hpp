// Kernels for products of int8 slices: one family a file, each compiled with its own flags. This header
// holds plain data alone, since an inline function compiled with a family's flags could be what the linker
// keeps for every other file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kintsugi::core {

// Vectors of a and of b, with all that pads them to Slices::vector_multiple, and what of k is added.
struct Int8Block {
  const std::int8_t* a;
  const std::int8_t* b;
  std::int64_t stride;  // from one vector to the next
  std::int64_t rows;    // vectors of a that matter, at most the kernels' tile
  std::int64_t columns;
  std::int64_t length;  // elements of each vector; none beyond are read
};

struct Int8Kernels {
  const char* name;

  // Products per time relative to OpenBLAS's FP32 product, below what docs/results/log has.
  double relative_rate;

  // Edge of the largest tile of sums, a power of two times Slices::vector_multiple.
  std::int64_t tile;

  // Of `packed`.
  std::size_t packed_bytes;

  // sums (tile x tile, column-major) += a * b^T modulo 2^32, at least for rows x columns of it.
  void (*add_product)(const Int8Block& block, std::byte* packed, std::uint32_t* sums);
};

extern const Int8Kernels int8_generic;
extern const Int8Kernels int8_avx512;  // x86-64 alone
extern const Int8Kernels int8_amx;     // x86-64 Linux alone

}  // namespace kintsugi::core
