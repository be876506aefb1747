// Products of operands that are split while they are multiplied (bf16x6-direct), element by element. Every
// engine of the host that has the scheme runs this definition with the accumulator of its matrix unit.
//
// A Unit has
//   Element, load(format, pattern)    an operand of the unit, from a slice's pattern
//   run(a, b, n, sum)                 sum + sum_p a[p] b[p]
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "arith/complex.hpp"
#include "arith/direct_arithmetic.hpp"
#include "arith/epilogue.hpp"
#include "arith/split_rule.hpp"
#include "base/embedding.hpp"
#include "base/memory.hpp"
#include "engines/fused_kernel.hpp"
#include "engines/tile_loop.hpp"

namespace kintsugi::core {

inline constexpr std::array direct_product_steps{StepKind::split, StepKind::multiply, StepKind::recombine};

// One tile of C: the vectors of a leaf of inner indices at a time.
template <class T, class Unit>
class DirectTile {
 public:
  static constexpr std::int64_t edge = 32;  // vectors of a side

  explicit DirectTile(const FusedProduct<T>& product)
      : product_(product), a_(view(product.a, false, product.conjugates_a)),
        b_(view(product.b, true, product.conjugates_b)) {}

  // Writes the tile's elements of finite rows and columns. Returns the number of those whose sum is not
  // accepted, of which FP32 computes all parts that are not.
  std::int64_t compute(std::int64_t row, std::int64_t column) {
    rows_ = {row, std::min(edge, product_.c.rows - row)};
    columns_ = {parts_of<T> * column, std::min(edge, parts_of<T> * (product_.c.columns - column))};
    std::fill_n(largest_a_, edge, 0.0F);
    std::fill_n(largest_b_, edge, 0.0F);
    sum_leaves([&](std::int64_t i, std::int64_t j) { return leaf_by_slices(i, j); },
               [](std::int64_t, std::int64_t) { return true; });
    accept();
    if (open_ > 0)
      sum_leaves([&](std::int64_t i, std::int64_t j) { return leaf_in_fp32(i, j); },
                 [&](std::int64_t i, std::int64_t j) { return is_open_[j][i]; });
    return store();
  }

 private:
  using Element = typename Unit::Element;
  using View = OperandView<T>;
  static constexpr int slices = 3;
  static constexpr std::uint32_t infinite = 0x7f800000U;

  // Elements of a side's vectors at the inner indices of a leaf, zeros behind the end of k.
  struct Side {
    float elements[edge][direct_leaf];
    Element slices[DirectTile::slices][edge][direct_leaf];
  };

  static View view(const MatrixView<const T>& matrix, bool is_right, bool conjugated) {
    if constexpr (is_complex<T>) {
      return {matrix, is_right, conjugated};
    } else {
      return matrix;
    }
  }

  // Sums all leaves of the elements that select(i, j) selects.
  template <class Leaf, class Select>
  void sum_leaves(const Leaf& leaf, const Select& select) {
    for (std::int64_t j = 0; j < columns_.count; ++j) {
      for (std::int64_t i = 0; i < rows_.count; ++i) {
        if (select(i, j)) sums_[j][i] = {};
      }
    }
    const bool splits = open_ == 0;
    for (std::int64_t begin = 0; begin < a_.columns; begin += direct_leaf) {
      load(a_, rows_, begin, splits, left_, largest_a_, finite_a_);
      load(b_, columns_, begin, splits, right_, largest_b_, finite_b_);
      for (std::int64_t j = 0; j < columns_.count; ++j) {
        for (std::int64_t i = 0; i < rows_.count; ++i) {
          if (select(i, j))
            sums_[j][i].add_leaf(leaf(i, j), begin + direct_leaf, begin + direct_leaf >= a_.columns);
        }
      }
    }
  }

  void load(const View& vectors, const Interval& which, std::int64_t begin, bool splits, Side& side,
            float* largest, bool* finite) {
    const std::int64_t length = std::min<std::int64_t>(direct_leaf, vectors.columns - begin);
    for (std::int64_t v = 0; v < which.count; ++v) {
      float* const elements = side.elements[v];
      for (std::int64_t p = 0; p < length; ++p) elements[p] = vectors(which.first + v, begin + p);
      std::fill(elements + length, elements + direct_leaf, 0.0F);
      if (!splits) continue;
      if (begin == 0) finite[v] = true;
      for (int p = 0; p < direct_leaf; ++p) split(side, v, p, largest[v], finite[v]);
    }
  }

  // Vectors with NaN or infinities are not written; zeros stand for these.
  void split(Side& side, std::int64_t v, int p, float& largest, bool& finite) {
    float x = side.elements[v][p];
    if ((std::bit_cast<std::uint32_t>(x) & infinite) == infinite) finite = false, x = 0;
    const SplitRule& rule = product_.problem.split_a;
    split_into_residuals(rule, static_cast<double>(x), 0, [&](int slice, std::uint64_t pattern) {
      side.slices[slice][v][p] = Unit::load(*rule.format, pattern);
      // A bf16 pattern is the upper half of that of an FP32 number.
      if (slice == 0)
        largest =
            std::max(largest, std::bit_cast<float>(static_cast<std::uint32_t>(pattern & 0x7fffU) << 16));
    });
    if (x != 0) largest = std::max(largest, direct_tiny_largest);
  }

  float leaf_by_slices(std::int64_t i, std::int64_t j) const {
    float leaf = 0;
    for (int begin = 0; begin < direct_leaf; begin += direct_step) {
      float sum = 0;
      for (const Term& term : product_.problem.schedule.terms)
        sum = Unit::run(left_.slices[term.a][i] + begin, right_.slices[term.b][j] + begin, direct_step, sum);
      leaf += sum;
    }
    return leaf;
  }

  float leaf_in_fp32(std::int64_t i, std::int64_t j) const {
    float leaf = 0;
    for (int begin = 0; begin < direct_leaf; begin += direct_step) {
      float sum = 0;
      for (int p = begin; p < begin + direct_step; ++p)
        sum = std::fma(left_.elements[i][p], right_.elements[j][p], sum);
      leaf += sum;
    }
    return leaf;
  }

  bool is_finite(std::int64_t i, std::int64_t j) const { return finite_a_[i] && finite_b_[j]; }

  void accept() {
    open_ = 0;
    for (std::int64_t j = 0; j < columns_.count; ++j) {
      for (std::int64_t i = 0; i < rows_.count; ++i) {
        is_open_[j][i] =
            is_finite(i, j) && !accepts_direct_sum(largest_a_[i], largest_b_[j], sums_[j][i].total);
        if (is_open_[j][i]) ++open_;
      }
    }
  }

  std::int64_t store() {
    std::int64_t open_elements = 0;
    const std::int64_t first = columns_.first / parts_of<T>;
    for (std::int64_t j = 0; j < columns_.count / parts_of<T>; ++j) {
      for (std::int64_t i = 0; i < rows_.count; ++i) {
        const std::int64_t v = parts_of<T> * j;
        if (!is_finite(i, v)) continue;
        T& element = product_.c(rows_.first + i, first + j);
        const T* old = product_.beta == T(0) ? nullptr : &element;
        const auto sum = [&](std::int64_t vector) { return static_cast<double>(sums_[vector][i].total); };
        if constexpr (is_complex<T>) {
          element = epilogue(Complex<double>(sum(v), sum(v + 1)), product_.alpha, product_.beta, old);
          if (is_open_[v][i] || is_open_[v + 1][i]) ++open_elements;
        } else {
          element = epilogue(sum(v), product_.alpha, product_.beta, old);
          if (is_open_[v][i]) ++open_elements;
        }
      }
    }
    open_ = 0;
    return open_elements;
  }

  const FusedProduct<T>& product_;
  View a_, b_;  // vectors x inner indices
  Interval rows_{}, columns_{};
  Side left_, right_;
  float largest_a_[edge], largest_b_[edge];  // magnitudes of high slices
  bool finite_a_[edge], finite_b_[edge];
  DirectSum sums_[edge][edge];
  bool is_open_[edge][edge];
  std::int64_t open_ = 0;  // sums that are not accepted
};

template <class T, class Unit>
void multiply_directly(const FusedProduct<T>& product) {
  using Tile = DirectTile<T, Unit>;
  const TileGrid grid{product.c.rows, product.c.columns, Tile::edge, Tile::edge / parts_of<T>};
  for_each_tile(grid, product.threads, product.scratch, aligned_size(sizeof(Tile)),
                [&](std::int64_t row, std::int64_t column, std::byte* scratch) {
                  Tile* const tile = new (scratch) Tile(product);
                  const std::int64_t recomputed = tile->compute(row, column);
                  if (product.recomputed != nullptr) *product.recomputed += recomputed;
                });
}

// Bytes of scratch of multiply_directly().
template <class Unit>
std::size_t direct_product_bytes(int threads) {
  return static_cast<std::size_t>(std::max(threads, 1)) *
         std::max(aligned_size(sizeof(DirectTile<float, Unit>)),
                  aligned_size(sizeof(DirectTile<std::complex<float>, Unit>)));
}

// True if the program splits operands while it multiplies. Engines that list it give the accumulator.
inline bool takes_direct_products(const FusedProblem& problem) {
  return problem.schedule.is_direct && (problem.type == ElementType::f32 || problem.type == ElementType::c32);
}

}  // namespace kintsugi::core
