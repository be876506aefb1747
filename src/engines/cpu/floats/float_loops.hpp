// Loops of a family's kernel. One file of each family includes them, with an Arithmetic in an unnamed
// namespace: so no other file can get code of its instruction set.
//
// Arithmetic has: the type Register of `lanes` floats; load(address); broadcast(float); multiply(x, y);
// add_product(sum, x, y), which is x y + sum rounded once; add_to(sums, x, weight), which adds weight * x to
// `lanes` doubles.
#pragma once

#include "engines/cpu/floats/float_kernels.hpp"

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

}  // namespace kintsugi::core
