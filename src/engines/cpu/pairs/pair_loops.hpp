// Loops of a family's kernel. One file of each family includes them, with an Arithmetic in an unnamed
// namespace: so no other file can get code of its instruction set.
#pragma once

#include <cstdint>

#include "arith/pair_sum.hpp"
#include "engines/cpu/pairs/pair_kernels.hpp"

namespace kintsugi::core {

// Adds to a register block of `registers` x `columns` sums. Arithmetic has the members that PairSum needs,
// and lanes, load, store and broadcast.
template <class Arithmetic, int registers, int columns>
void add_pair_block(PairTile& tile, std::int64_t i, std::int64_t j, std::int64_t length) {
  using A = Arithmetic;
  using Value = typename A::Value;
  PairSum<A> sums[columns][registers];
  for (int c = 0; c < columns; ++c) {
    for (int r = 0; r < registers; ++r) {
      const std::int64_t index = i + r * A::lanes + (j + c) * pair_rows;
      sums[c][r] = {A::load(tile.sum_hi + index), A::load(tile.sum_lo + index)};
    }
  }
  for (std::int64_t p = 0; p < length; ++p) {
    Value x_hi[registers], x_lo[registers];
    for (int r = 0; r < registers; ++r) {
      const std::int64_t index = i + r * A::lanes + p * pair_rows;
      x_hi[r] = A::load(tile.a_hi + index);
      x_lo[r] = A::load(tile.a_lo + index);
    }
    for (int c = 0; c < columns; ++c) {
      const Value y_hi = A::broadcast(tile.b_hi[j + c + p * pair_columns]);
      const Value y_lo = A::broadcast(tile.b_lo[j + c + p * pair_columns]);
      for (int r = 0; r < registers; ++r) sums[c][r].add_product(x_hi[r], x_lo[r], y_hi, y_lo);
    }
  }
  for (int c = 0; c < columns; ++c) {
    for (int r = 0; r < registers; ++r) {
      const std::int64_t index = i + r * A::lanes + (j + c) * pair_rows;
      A::store(tile.sum_hi + index, sums[c][r].hi);
      A::store(tile.sum_lo + index, sums[c][r].lo);
    }
  }
}

template <class Arithmetic, int registers, int columns>
void add_pair_products(PairTile& tile, std::int64_t rows, std::int64_t used_columns, std::int64_t length) {
  static_assert(pair_rows % (registers * Arithmetic::lanes) == 0 && pair_columns % columns == 0);
  for (std::int64_t j = 0; j < used_columns; j += columns) {
    for (std::int64_t i = 0; i < rows; i += registers * Arithmetic::lanes)
      add_pair_block<Arithmetic, registers, columns>(tile, i, j, length);
  }
}

}  // namespace kintsugi::core

// SIMD arithmetic of double-double products, for a register width of x86-64: defines a type `name` for the
// loops above. `prefix` is the prefix of the intrinsics. It is a macro because each width is compiled with
// its own flags: files with different flags might share the code of a template.
#define KINTSUGI_PAIR_VECTORS(name, Register, count, prefix)                                        \
  struct name {                                                                                     \
    using Value = Register;                                                                         \
    static constexpr std::int64_t lanes = count;                                                    \
    static Value load(const double* x) { return prefix##_load_pd(x); }                              \
    static void store(double* target, Value x) { prefix##_store_pd(target, x); }                    \
    static Value broadcast(double x) { return prefix##_set1_pd(x); }                                \
    static Value plus(Value a, Value b) { return prefix##_add_pd(a, b); }                           \
    static Value minus(Value a, Value b) { return prefix##_sub_pd(a, b); }                          \
    static Value times(Value a, Value b) { return prefix##_mul_pd(a, b); }                          \
    static Value fused(Value a, Value b, Value c) { return prefix##_fmadd_pd(a, b, c); }            \
    static Value fused_difference(Value a, Value b, Value c) { return prefix##_fmsub_pd(a, b, c); } \
  };
