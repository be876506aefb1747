// Loops of a family's kernel, included by one file of each family. Its Arithmetic is in an unnamed namespace,
// so that no other file can get code of its instruction set.
//
// Arithmetic: the type Vector of `lanes` floats, load(address), broadcast(float), multiply(x, y),
// add_product(sum, x, y) = x y + sum rounded once, and add_to(sums, x, weight), which adds weight * x to
// `lanes` doubles.
#pragma once

#include "engines/cpu/floats/float_kernels.hpp"

namespace kintsugi::core {

// The accumulators of a register block: `vectors` vectors of rows from `a` on, by `columns` columns. Where a
// block is taller than a panel, its rows continue in the next one.
template <class Arithmetic, int vectors, int columns>
struct FloatAccumulators {
  using A = Arithmetic;
  using Vector = typename A::Vector;

  // Offset of a vector of rows within the panels of an operand.
  static constexpr std::int64_t offset_of(int vector, std::int64_t panel_stride) {
    return vector * A::lanes / float_panel * panel_stride + vector * A::lanes % float_panel;
  }

  void clear() {
#pragma GCC unroll 8
    for (int c = 0; c < columns; ++c) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[c][v] = A::broadcast(0);
    }
  }

  void rescale(float factor) {
    const Vector factors = A::broadcast(factor);
#pragma GCC unroll 8
    for (int c = 0; c < columns; ++c) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[c][v] = A::multiply(sums[c][v], factors);
    }
  }

  void add_products(const float* a, const float* b, std::int64_t panel_stride, std::int64_t length) {
    for (std::int64_t p = 0; p < length; ++p) {
      Vector x[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) x[v] = A::load(a + p * float_panel + offset_of(v, panel_stride));
#pragma GCC unroll 8
      for (int c = 0; c < columns; ++c) {
        const Vector y = A::broadcast(b[p * float_panel + c]);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) sums[c][v] = A::add_product(sums[c][v], x[v], y);
      }
    }
  }

  void add_outside(double weight, double* outside) const {
#pragma GCC unroll 8
    for (int c = 0; c < columns; ++c) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v)
        A::add_to(outside + c * float_panel + offset_of(v, float_columns * float_panel), sums[c][v], weight);
    }
  }

  Vector sums[columns][vectors];
};

// Runs the block for one register block, whose rows begin at `a` and columns at `b`.
template <class Arithmetic, int vectors, int columns>
void add_register_block(const FloatBlock& block, const float* a, const float* b, double* sums) {
  FloatAccumulators<Arithmetic, vectors, columns> inside;
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
