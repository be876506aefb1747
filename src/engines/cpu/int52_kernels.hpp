// Kernels for products of 52-bit words: one family a file, each compiled with its own flags. Plain data
// alone, as in int8_kernels.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kintsugi::core {

inline constexpr std::int64_t int52_tile = 256;

__extension__ using Int52Sum = unsigned __int128;

// Vectors of a and of b, with all that pads them to int52_tile, and what of k is added.
struct Int52Block {
  const std::int64_t* a;
  const std::int64_t* b;
  std::int64_t stride;  // from one vector to the next
  std::int64_t rows;    // vectors of a that matter, at most int52_tile
  std::int64_t columns;
  std::int64_t length;  // elements of each vector; none beyond are read
};

// Sum of row i, column j at i + j * stride.
struct Int52Sums {
  Int52Sum* data;
  std::int64_t stride;
  bool hold;  // something already, to which the product is added; else they are not read
};

struct Int52Kernels {
  const char* name;

  // Products per time relative to OpenBLAS's FP32 product, below what docs/results/log has.
  double relative_rate;

  // Of `packed`.
  std::size_t packed_bytes;

  // sums = a * b^T (or += ) modulo 2^128 for rows x columns, and nothing beside them; length > 0.
  void (*add_product)(const Int52Block& block, std::byte* packed, const Int52Sums& sums);
};

extern const Int52Kernels int52_generic;
extern const Int52Kernels int52_avx512;  // x86-64 alone

}  // namespace kintsugi::core
