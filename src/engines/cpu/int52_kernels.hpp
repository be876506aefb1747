// Kernels for products of 52-bit words. Each family is in a file of its own, compiled with its own flags.
// This header holds plain data only, for the reason in int8_kernels.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kintsugi::core {

inline constexpr std::int64_t int52_tile = 256;

__extension__ using Int52Sum = unsigned __int128;

// Vectors of a and of b, padded to int52_tile, and the range of k over which products are added.
struct Int52Block {
  const std::int64_t* a;
  const std::int64_t* b;
  std::int64_t stride;  // elements from one vector to the next
  std::int64_t rows;    // vectors of a whose sums are needed, at most int52_tile
  std::int64_t columns;
  std::int64_t length;  // elements of each vector; the kernels read no others
};

// Sums of a tile. The sum of row i and column j is at i + j * stride.
struct Int52Sums {
  Int52Sum* data;
  std::int64_t stride;
  bool adds;  // true: the product is added to the sums; false: it replaces them
};

struct Int52Kernels {
  const char* name;

  // Products per unit of time relative to OpenBLAS's FP32 product. The values are rates in lab/results/log,
  // rounded down.
  double relative_rate;

  // Bytes of add_product()'s scratch memory `packed`.
  std::size_t packed_bytes;

  // Computes sums = a * b^T, or adds a * b^T to the sums, modulo 2^128, for rows x columns sums; length > 0.
  void (*add_product)(const Int52Block& block, std::byte* packed, const Int52Sums& sums);
};

extern const Int52Kernels int52_generic;
extern const Int52Kernels int52_avx512;  // x86-64 only

}  // namespace kintsugi::core
