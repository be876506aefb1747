// Loops of a family's kernel. One file of each family includes them, with an Arithmetic in an unnamed
// namespace: so no other file can get code of its instruction set.
//
// Arithmetic has: the type Register of `lanes` floats; load(address); broadcast(float); multiply(x, y);
// add_product(sum, x, y), which is x y + sum rounded once; add_to(sums, x, weight), which adds weight * x to
// `lanes` doubles.
#pragma once

#include <cstdint>

#include "arith/pair_sum.hpp"
#include "engines/cpu/kernels.hpp"
#include "recombine/sum_kernels.hpp"

namespace kintsugi::core {

// The accumulators of a register block: `registers` registers of rows, by `columns` columns. A block may be
// taller than a panel; its rows then continue in the next panel.
template <class Arithmetic, int registers, int columns>
struct FloatAccumulators {
  using A = Arithmetic;
  using Register = typename A::Register;

  // Distance in elements from the first row of a register block to the first row of its register number
  // `index`.
  static constexpr std::int64_t offset_of(int index, std::int64_t panel_stride) {
    return index * A::lanes / float_panel * panel_stride + index * A::lanes % float_panel;
  }

  void clear() {
#pragma GCC unroll 8
    for (int c = 0; c < columns; ++c) {
#pragma GCC unroll 4
      for (int r = 0; r < registers; ++r) sums[c][r] = A::broadcast(0);
    }
  }

  void rescale(float factor) {
    const Register factors = A::broadcast(factor);
#pragma GCC unroll 8
    for (int c = 0; c < columns; ++c) {
#pragma GCC unroll 4
      for (int r = 0; r < registers; ++r) sums[c][r] = A::multiply(sums[c][r], factors);
    }
  }

  void add_products(const float* a, const float* b, std::int64_t panel_stride, std::int64_t length) {
    for (std::int64_t p = 0; p < length; ++p) {
      Register x[registers];
#pragma GCC unroll 4
      for (int r = 0; r < registers; ++r) x[r] = A::load(a + p * float_panel + offset_of(r, panel_stride));
#pragma GCC unroll 8
      for (int c = 0; c < columns; ++c) {
        const Register y = A::broadcast(b[p * float_panel + c]);
#pragma GCC unroll 4
        for (int r = 0; r < registers; ++r) sums[c][r] = A::add_product(sums[c][r], x[r], y);
      }
    }
  }

  void add_outside(double weight, double* outside) const {
#pragma GCC unroll 8
    for (int c = 0; c < columns; ++c) {
#pragma GCC unroll 4
      for (int r = 0; r < registers; ++r)
        A::add_to(outside + c * float_panel + offset_of(r, float_columns * float_panel), sums[c][r], weight);
    }
  }

  Register sums[columns][registers];
};

// Adds the terms of the k-block to the sums of one register block. Its rows begin at `a`, its columns at `b`.
template <class Arithmetic, int registers, int columns>
void add_register_block(const FloatBlock& block, const float* a, const float* b, double* sums) {
  FloatAccumulators<Arithmetic, registers, columns> inside;
  inside.clear();
  for (std::int64_t p = 0; p < block.length; p += block.step) {
    const std::int64_t length = block.length - p < block.step ? block.length - p : block.step;
    for (std::int64_t t = 0; t < block.term_count; ++t) {
      const FloatTerm& term = block.terms[t];
      if (term.rescales) inside.rescale(block.rescale);
      inside.add_products(a + term.a + p * float_panel, b + term.b + p * float_panel, block.panel_stride,
                          length);
    }
  }
  inside.add_outside(block.weight, sums);
}

// Loops of a family's kernel. One file of each family includes them, with an Arithmetic in an unnamed
// namespace: so no other file can get code of its instruction set.

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

// Sums of products in two doubles, as CompensatedSum::add_product() adds them. Arithmetic has in addition
// magnitude(x), the absolute value.
template <class Arithmetic>
struct LaneSums {
  using A = Arithmetic;
  using Value = typename A::Value;
  Value sum;
  Value errors;
  Value magnitudes;

  [[gnu::always_inline]] void add_product(Value x, Value y) {
    const Value product = A::times(x, y);
    const Value product_error = A::fused_difference(x, y, product);
    const Value total = A::plus(sum, product);
    const Value added = A::minus(total, sum);
    const Value sum_error = A::plus(A::minus(sum, A::minus(total, added)), A::minus(product, added));
    sum = total;
    const Value error = A::plus(product_error, sum_error);
    errors = A::plus(errors, error);
    magnitudes = A::plus(magnitudes, A::magnitude(error));
  }
  void load(const CompensatedSums& sums, std::int64_t index) {
    sum = A::load(sums.sum + index);
    errors = A::load(sums.errors + index);
    magnitudes = A::load(sums.magnitudes + index);
  }
  void store(const CompensatedSums& sums, std::int64_t index) const {
    A::store(sums.sum + index, sum);
    A::store(sums.errors + index, errors);
    A::store(sums.magnitudes + index, magnitudes);
  }
};

template <class Arithmetic, int columns>
void add_sum_columns(const double* a, const double* b, std::int64_t length, std::int64_t column,
                     const CompensatedSums& target) {
  using A = Arithmetic;
  for (std::int64_t i = 0; i < sum_panel_rows; i += A::lanes) {
    LaneSums<A> sums[columns];
    for (int c = 0; c < columns; ++c) sums[c].load(target, i + (column + c) * target.stride);
    for (std::int64_t p = 0; p < length; ++p) {
      const typename A::Value x = A::load(a + i + p * sum_panel_rows);
      for (int c = 0; c < columns; ++c)
        sums[c].add_product(x, A::broadcast(b[column + c + p * sum_panel_columns]));
    }
    for (int c = 0; c < columns; ++c) sums[c].store(target, i + (column + c) * target.stride);
  }
}

// `block_columns`: columns whose sums are in registers at once.
template <class Arithmetic, int block_columns>
void add_sum_panels(const double* a, const double* b, std::int64_t length, std::int64_t columns,
                    const CompensatedSums& sums) {
  std::int64_t j = 0;
  for (; j + block_columns <= columns; j += block_columns)
    add_sum_columns<Arithmetic, block_columns>(a, b, length, j, sums);
  for (; j < columns; ++j) add_sum_columns<Arithmetic, 1>(a, b, length, j, sums);
}

template <class Arithmetic>
void add_sum_vectors(const double* a, const double* b, std::int64_t length, const CompensatedSums& target) {
  using A = Arithmetic;
  constexpr std::int64_t registers = sum_panel_rows / A::lanes;
  LaneSums<A> sums[registers];
  const auto add = [&](const double* x, const double* y) {
    for (std::int64_t r = 0; r < registers; ++r)
      sums[r].add_product(A::load(x + r * A::lanes), A::load(y + r * A::lanes));
  };
  for (std::int64_t r = 0; r < registers; ++r) sums[r].load(target, r * A::lanes);
  std::int64_t p = 0;
  for (; p + sum_panel_rows <= length; p += sum_panel_rows) add(a + p, b + p);
  if (p < length) {
    double last_a[sum_panel_rows] = {};
    double last_b[sum_panel_rows] = {};
    for (std::int64_t l = 0; l < length - p; ++l) {
      last_a[l] = a[p + l];
      last_b[l] = b[p + l];
    }
    add(last_a, last_b);
  }
  for (std::int64_t r = 0; r < registers; ++r) sums[r].store(target, r * A::lanes);
}

// SIMD arithmetic of doubles, for a register width of x86-64: defines a type `name` for the loops above.
// `prefix` is the prefix of the intrinsics. It is a macro because each width is compiled with its own flags:
// files with different flags might share the code of a template.
#define KINTSUGI_DOUBLE_VECTORS(name, Register, count, prefix)                                      \
  struct name {                                                                                     \
    using Value = Register;                                                                         \
    static constexpr std::int64_t lanes = count;                                                    \
    static Value load(const double* x) { return prefix##_loadu_pd(x); }                             \
    static void store(double* target, Value x) { prefix##_storeu_pd(target, x); }                   \
    static Value broadcast(double x) { return prefix##_set1_pd(x); }                                \
    static Value plus(Value a, Value b) { return prefix##_add_pd(a, b); }                           \
    static Value minus(Value a, Value b) { return prefix##_sub_pd(a, b); }                          \
    static Value times(Value a, Value b) { return prefix##_mul_pd(a, b); }                          \
    static Value fused(Value a, Value b, Value c) { return prefix##_fmadd_pd(a, b, c); }            \
    static Value fused_difference(Value a, Value b, Value c) { return prefix##_fmsub_pd(a, b, c); } \
  };

}  // namespace kintsugi::core
