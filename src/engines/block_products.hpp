// Products with one exponent for each vector and k-block (fp16x3-block), element by element. Every engine of
// the host that has the scheme runs this definition with the accumulator of its matrix unit.
//
// A Unit has
//   Element, load(format, pattern)    an operand of the unit, from a slice's pattern
//   run(a, b, n, sum)                 sum + sum_p a[p] b[p]
//   description                       BlockUnit of arith/block_arithmetic.hpp
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "arith/block_arithmetic.hpp"
#include "arith/complex.hpp"
#include "arith/epilogue.hpp"
#include "arith/split_rule.hpp"
#include "base/embedding.hpp"
#include "base/memory.hpp"
#include "engines/fused_kernel.hpp"
#include "engines/tile_loop.hpp"

namespace kintsugi::core {

inline constexpr std::array block_product_steps{StepKind::split, StepKind::multiply, StepKind::recombine};

// One tile of C: the vectors of a leaf of inner indices at a time.
template <class T, class Unit>
class BlockTile {
 public:
  static constexpr std::int64_t edge = 32;  // vectors of a side

  explicit BlockTile(const FusedProduct<T>& product)
      : product_(product), a_(view(product.a, false, product.conjugates_a)),
        b_(view(product.b, true, product.conjugates_b)) {}

  // Writes the tile's elements of finite rows and columns. Returns the number of those whose sum is not
  // accepted, of which FP32 computes all parts that are not.
  std::int64_t compute(std::int64_t row, std::int64_t column) {
    rows_ = {row, std::min(edge, product_.c.rows - row)};
    columns_ = {parts_of<T> * column, std::min(edge, parts_of<T> * (product_.c.columns - column))};
    for (std::int64_t v = 0; v < rows_.count; ++v) counts_a_[v] = {};
    for (std::int64_t v = 0; v < columns_.count; ++v) counts_b_[v] = {};
    sum_leaves([&](std::int64_t i, std::int64_t j) { return leaf_by_slices(i, j); },
               [](std::int64_t, std::int64_t) { return true; });
    accept();
    if (open_ > 0)
      sum_leaves([&](std::int64_t i, std::int64_t j) { return leaf_in_fp32(i, j); },
                 [&](std::int64_t i, std::int64_t j) { return exponents_[j][i] == 0; });
    return store();
  }

 private:
  using Element = typename Unit::Element;
  using View = OperandView<T>;
  static constexpr int blocks_of_leaf = block_leaf / block_depth;

  // Elements of a side's vectors at the inner indices of a leaf, zeros behind the end of k.
  struct Side {
    float elements[edge][block_leaf];
    Element slices[2][edge][block_leaf];
    float weights[edge][blocks_of_leaf];
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
    for (std::int64_t begin = 0; begin < a_.columns; begin += block_leaf) {
      load(a_, rows_, begin, splits, left_, counts_a_);
      load(b_, columns_, begin, splits, right_, counts_b_);
      for (std::int64_t j = 0; j < columns_.count; ++j) {
        for (std::int64_t i = 0; i < rows_.count; ++i) {
          if (select(i, j))
            sums_[j][i].add_leaf(leaf(i, j), begin + block_leaf, begin + block_leaf >= a_.columns);
        }
      }
    }
  }

  void load(const View& vectors, const Interval& which, std::int64_t begin, bool splits, Side& side,
            BlockCounts* counts) {
    const std::int64_t length = std::min<std::int64_t>(block_leaf, vectors.columns - begin);
    for (std::int64_t v = 0; v < which.count; ++v) {
      float* const elements = side.elements[v];
      for (std::int64_t p = 0; p < length; ++p) elements[p] = vectors(which.first + v, begin + p);
      std::fill(elements + length, elements + block_leaf, 0.0F);
      if (!splits) continue;
      for (int block = 0; block < blocks_of_leaf; ++block) split_block(side, v, block, counts[v]);
    }
  }

  void split_block(Side& side, std::int64_t v, int block, BlockCounts& counts) {
    const int first = block * block_depth;
    const float* const elements = side.elements[v] + first;
    std::uint32_t largest = 0;
    for (int p = 0; p < block_depth; ++p)
      largest = std::max(largest, std::bit_cast<std::uint32_t>(elements[p]) & 0x7fffffffU);
    const int exponent = block_exponent(largest);
    counts.add(count_block(elements, block_depth, exponent));
    const bool finite = exponent < special_block_exponent;
    side.weights[v][block] = finite ? block_weight(exponent) : 0;
    const SplitRule& rule = product_.problem.split_a;
    for (int p = 0; p < block_depth; ++p) {
      split_into_residuals(rule, finite ? static_cast<double>(elements[p]) : 0, block_top_exponent - exponent,
                           [&](int slice, std::uint64_t pattern) {
                             side.slices[slice][v][first + p] = Unit::load(*rule.format, pattern);
                           });
    }
  }

  float leaf_by_slices(std::int64_t i, std::int64_t j) const {
    float leaf = 0;
    for (int block = 0; block < blocks_of_leaf; ++block) {
      const int begin = block * block_depth;
      const int middle = begin + half_block_depth;
      const auto run = [&](int slice_a, int slice_b, int from, int length, float sum) {
        return Unit::run(left_.slices[slice_a][i] + from, right_.slices[slice_b][j] + from, length, sum);
      };
      const float weight = left_.weights[i][block] * right_.weights[j][block];
      float sum = run(1, 0, begin, block_depth, 0.0F);
      sum = run(0, 1, begin, block_depth, sum) * normal_power_of_two(-block_residual_exponent);
      leaf = std::fma(run(0, 0, begin, half_block_depth, sum), weight, leaf);
      leaf = std::fma(run(0, 0, middle, half_block_depth, 0.0F), weight, leaf);
    }
    return leaf;
  }

  float leaf_in_fp32(std::int64_t i, std::int64_t j) const {
    float leaf = 0;
    for (int half = 0; half < block_leaf; half += half_block_depth) {
      float sum = 0;
      for (int p = half; p < half + half_block_depth; ++p)
        sum = std::fma(left_.elements[i][p], right_.elements[j][p], sum);
      leaf += sum;
    }
    return leaf;
  }

  bool is_finite(std::int64_t i, std::int64_t j) const {
    return counts_a_[i].finite() && counts_b_[j].finite();
  }

  // Sets the exponents of the sums' units; 0: the sum is not accepted, and FP32 computes it.
  void accept() {
    open_ = 0;
    for (std::int64_t j = 0; j < columns_.count; ++j) {
      for (std::int64_t i = 0; i < rows_.count; ++i) {
        const bool accepted =
            accepts_block_sum(counts_a_[i], counts_b_[j], sums_[j][i].total, Unit::description);
        exponents_[j][i] = accepted || !is_finite(i, j) ? -block_sum_exponent : 0;
        if (exponents_[j][i] == 0) ++open_;
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
        const auto sum = [&](std::int64_t vector) {
          return times_power_of_two(static_cast<double>(sums_[vector][i].total), exponents_[vector][i]);
        };
        if constexpr (is_complex<T>) {
          element = epilogue(Complex<double>(sum(v), sum(v + 1)), product_.alpha, product_.beta, old);
          if (exponents_[v][i] == 0 || exponents_[v + 1][i] == 0) ++open_elements;
        } else {
          element = epilogue(sum(v), product_.alpha, product_.beta, old);
          if (exponents_[v][i] == 0) ++open_elements;
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
  BlockCounts counts_a_[edge], counts_b_[edge];
  BlockSum sums_[edge][edge];
  std::int32_t exponents_[edge][edge];
  std::int64_t open_ = 0;  // sums that are not accepted
};

template <class T, class Unit>
void multiply_by_blocks(const FusedProduct<T>& product) {
  using Tile = BlockTile<T, Unit>;
  const TileGrid grid{product.c.rows, product.c.columns, Tile::edge, Tile::edge / parts_of<T>};
  for_each_tile(grid, product.threads, product.scratch, aligned_size(sizeof(Tile)),
                [&](std::int64_t row, std::int64_t column, std::byte* scratch) {
                  Tile* const tile = new (scratch) Tile(product);
                  const std::int64_t recomputed = tile->compute(row, column);
                  if (product.recomputed != nullptr) *product.recomputed += recomputed;
                });
}

// Bytes of scratch of multiply_by_blocks().
template <class Unit>
std::size_t block_product_bytes(int threads) {
  return static_cast<std::size_t>(std::max(threads, 1)) *
         std::max(aligned_size(sizeof(BlockTile<float, Unit>)),
                  aligned_size(sizeof(BlockTile<std::complex<float>, Unit>)));
}

// True if the program has exponents per vector and k-block. Engines that list it give the accumulator.
inline bool takes_block_products(const FusedProblem& problem) {
  return problem.schedule.exponents_per_block &&
         (problem.type == ElementType::f32 || problem.type == ElementType::c32);
}

}  // namespace kintsugi::core
