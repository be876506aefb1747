// Loops of a family's kernel, included by one file of each family. Its Arithmetic is in an unnamed namespace,
// so that no other file can get code of its instruction set.
#pragma once

#include "arith/pair_sum.hpp"
#include "engines/cpu/pairs/pair_kernels.hpp"

namespace kintsugi::core {

// Adds one register block of `vectors` x `columns` sums. Arithmetic: that of PairSum, and lanes, load, store,
// broadcast.
template <class Arithmetic, int vectors, int columns>
void add_pair_block(PairTile& tile, std::int64_t i, std::int64_t j, std::int64_t length) {
  using A = Arithmetic;
  using Vector = typename A::Vector;
  PairSum<A> sums[columns][vectors];
  for (int c = 0; c < columns; ++c) {
    for (int v = 0; v < vectors; ++v) {
      const std::int64_t index = i + v * A::lanes + (j + c) * pair_rows;
      sums[c][v] = {A::load(tile.sum_hi + index), A::load(tile.sum_lo + index)};
    }
  }
  for (std::int64_t p = 0; p < length; ++p) {
    Vector x_hi[vectors], x_lo[vectors];
    for (int v = 0; v < vectors; ++v) {
      const std::int64_t index = i + v * A::lanes + p * pair_rows;
      x_hi[v] = A::load(tile.a_hi + index);
      x_lo[v] = A::load(tile.a_lo + index);
    }
    for (int c = 0; c < columns; ++c) {
      const Vector y_hi = A::broadcast(tile.b_hi[j + c + p * pair_columns]);
      const Vector y_lo = A::broadcast(tile.b_lo[j + c + p * pair_columns]);
      for (int v = 0; v < vectors; ++v) sums[c][v].add_product(x_hi[v], x_lo[v], y_hi, y_lo);
    }
  }
  for (int c = 0; c < columns; ++c) {
    for (int v = 0; v < vectors; ++v) {
      const std::int64_t index = i + v * A::lanes + (j + c) * pair_rows;
      A::store(tile.sum_hi + index, sums[c][v].hi);
      A::store(tile.sum_lo + index, sums[c][v].lo);
    }
  }
}

template <class Arithmetic, int vectors, int columns>
void add_pair_products(PairTile& tile, std::int64_t rows, std::int64_t used_columns, std::int64_t length) {
  static_assert(pair_rows % (vectors * Arithmetic::lanes) == 0 && pair_columns % columns == 0);
  for (std::int64_t j = 0; j < used_columns; j += columns) {
    for (std::int64_t i = 0; i < rows; i += vectors * Arithmetic::lanes)
      add_pair_block<Arithmetic, vectors, columns>(tile, i, j, length);
  }
}

}  // namespace kintsugi::core
