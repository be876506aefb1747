// The schemes mixpert-1 ... mixpert-full by their definition in docs/schemes/mixpert.md, element by element,
// without code of the library. Integers are rounded in long double, exponents come from ilogb.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/view.hpp"

namespace kintsugi::test {

struct TileScheme {
  int segments_a = 3;
  int segments_b = 3;
  std::int64_t depth = 32;
  bool pair = false;

  std::string name() const {
    const int level = segments_a == 4 ? 5 : 2 * segments_a + segments_b - 5;
    return (level == 5 ? std::string("mixpert-full") : "mixpert-" + std::to_string(level)) +
           ":tile=" + std::to_string(depth) + (pair ? ":exponent=pair" : "");
  }
};

inline const std::vector<TileScheme>& tile_levels() {
  static const std::vector<TileScheme> levels{{2, 2}, {2, 3}, {3, 2}, {3, 3}, {4, 4}};
  return levels;
}

// One operand (vectors x k), cut into tiles.
class TileOperand {
 public:
  static constexpr int zeros = -100000;

  TileOperand(core::MatrixView<const float> vectors, int tile_vectors, int segments, std::int64_t depth)
      : vectors_(vectors), tile_vectors_(tile_vectors), bits_(7 * segments), segments_(segments),
        depth_(depth) {
    const auto delta = static_cast<std::int64_t>(std::ilogb(static_cast<double>(vectors.columns)));
    for (std::int64_t first = 0; first < vectors.rows; first += tile_vectors) {
      float largest = 0;
      for (std::int64_t begin = 0; begin < vectors.columns; begin += depth) {
        int p = zeros;
        std::int64_t sum = 0, elements = 0;
        for_each(first, begin, [&](float x) {
          largest = std::max(largest, std::fabs(x));
          p = std::max(p, exponent_of_rounded(x));
          sum += exponent_of_rounded(x);
          ++elements;
        });
        exponents_.push_back(p);
        fails_.push_back(elements * p - sum - elements * delta > 0);
      }
      panels_.push_back(
          largest == 0 ? 0 : std::ilogb(largest) + (std::scalbn(largest, -std::ilogb(largest)) >= 0x1.fcp0F));
    }
    for (std::int64_t v = 0; v < vectors.rows; ++v) {
      for (std::int64_t p = 0; p < vectors.columns; ++p) {
        const float x = at(v, p);
        const std::int64_t integer = x == 0 ? 0 : nearest(x, bits_ - 1 - exponent(v, p / depth));
        integers_.push_back(x < 0 ? -integer : integer);
      }
    }
  }

  float at(std::int64_t v, std::int64_t p) const {
    const float x = vectors_(v, p);
    return std::isfinite(x) ? x : 0.0F;
  }
  std::int64_t k() const { return vectors_.columns; }
  int exponent(std::int64_t v, std::int64_t tile) const { return exponents_[index(v, tile)]; }
  bool fails(std::int64_t v, std::int64_t tile) const { return fails_[index(v, tile)]; }
  int panel(std::int64_t v) const { return panels_[static_cast<std::size_t>(v / tile_vectors_)]; }
  int segments() const { return segments_; }

  // Segment s of an element's integer, in units of the tile's exponent, after shifting the integer right by
  // `right` bits.
  std::int64_t segment(std::int64_t v, std::int64_t p, int s, int right) const {
    const std::int64_t integer = integers_[static_cast<std::size_t>(v * k() + p)];
    const std::int64_t segment = ((std::abs(integer) >> right) >> (7 * (segments_ - 1 - s))) % 128;
    return integer < 0 ? -segment : segment;
  }

  std::int64_t failing() const { return std::count(fails_.begin(), fails_.end(), true); }

  // The integer nearest to |x| 2^shift, ties to even.
  static std::int64_t nearest(float x, int shift) {
    return std::llrint(std::ldexp(std::fabs(static_cast<long double>(x)), shift));
  }

 private:
  template <class Visit>
  void for_each(std::int64_t first, std::int64_t begin, const Visit& visit) const {
    for (std::int64_t v = first; v < std::min(vectors_.rows, first + tile_vectors_); ++v) {
      for (std::int64_t p = begin; p < std::min(vectors_.columns, begin + depth_); ++p) {
        if (at(v, p) != 0) visit(at(v, p));
      }
    }
  }
  int exponent_of_rounded(float x) const {
    const int exponent = std::ilogb(x);
    return exponent + (nearest(x, bits_ - 1 - exponent) == std::int64_t{1} << bits_ ? 1 : 0);
  }
  std::size_t index(std::int64_t v, std::int64_t tile) const {
    return static_cast<std::size_t>(v / tile_vectors_ * core::divide_up(k(), depth_) + tile);
  }

  core::MatrixView<const float> vectors_;
  std::int64_t tile_vectors_;
  int bits_;
  int segments_;
  std::int64_t depth_;
  std::vector<std::int64_t> integers_;  // of all elements, with their signs
  std::vector<int> exponents_;
  std::vector<bool> fails_;
  std::vector<int> panels_;
};

// The product of a, m x k, and b, k x n, all finite.
class TileProduct {
 public:
  TileProduct(const TileScheme& scheme, core::MatrixView<const float> a, core::MatrixView<const float> b)
      : scheme_(scheme), a_(a, 16, scheme.segments_a, scheme.depth),
        b_(b.transposed(), 8, scheme.segments_b, scheme.depth) {}

  const TileOperand& a() const { return a_; }
  const TileOperand& b() const { return b_; }

  // alpha (A B)_ij + beta old; beta = 0: old is not used.
  float operator()(std::int64_t i, std::int64_t j, float alpha = 1, float beta = 0, float old = 0) const {
    double sum = std::ldexp(static_cast<double>(sum_of_tiles(i, j)), -19) +
                 std::ldexp(static_cast<double>(sum_of_pieces(i, j)), -14);
    sum = static_cast<double>(alpha) * std::ldexp(sum, a_.panel(i) + b_.panel(j));
    return static_cast<float>(beta == 0 ? sum : sum + static_cast<double>(beta) * static_cast<double>(old));
  }

 private:
  static float weight(int difference) { return difference < -126 ? 0.0F : std::ldexp(1.0F, difference); }

  bool fails(std::int64_t i, std::int64_t j, std::int64_t tile) const {
    return a_.fails(i, tile) || b_.fails(j, tile);
  }

  float sum_of_tiles(std::int64_t i, std::int64_t j) const {
    float acc = 0;
    for (std::int64_t tile = 0; tile * scheme_.depth < a_.k(); ++tile) {
      if (fails(i, j, tile)) continue;
      const int p = a_.exponent(i, tile);
      const int q = b_.exponent(j, tile);
      if (p == TileOperand::zeros || q == TileOperand::zeros) continue;
      const int top_a = scheme_.pair ? std::max(p, q) : p;
      const int top_b = scheme_.pair ? std::max(p, q) : q;
      if (std::max(top_a - p, top_b - q) >= 28) continue;  // nothing is left of 28 bits
      const float product = weight(top_a - a_.panel(i)) * weight(top_b - b_.panel(j));
      acc = std::fma(tile_value(i, j, tile, top_a - p, top_b - q), product, acc);
    }
    return acc;
  }

  float tile_value(std::int64_t i, std::int64_t j, std::int64_t tile, int right_a, int right_b) const {
    std::int64_t sums[4] = {};
    const std::int64_t end = std::min(a_.k(), (tile + 1) * scheme_.depth);
    for (std::int64_t p = tile * scheme_.depth; p < end; ++p) {
      for (int s = 0; s < a_.segments(); ++s) {
        for (int t = 0; t < b_.segments() && s + t < 4; ++t)
          sums[s + t] += a_.segment(i, p, s, right_a) * b_.segment(j, p, t, right_b);
      }
    }
    const auto high = static_cast<float>(128 * sums[0] + sums[1]);
    const auto low = static_cast<float>(128 * sums[2] + sums[3]);
    return std::fma(low, 0x1p-14F, high);
  }

  float sum_of_pieces(std::int64_t i, std::int64_t j) const {
    float acc = 0;
    for (std::int64_t begin = 0; begin < a_.k(); begin += 32) {
      if (!fails(i, j, begin / scheme_.depth)) continue;
      const Piece a(a_, i, begin);
      const Piece b(b_, j, begin);
      if (a.exponent == TileOperand::zeros || b.exponent == TileOperand::zeros) continue;
      std::int64_t sums[6] = {};
      for (std::int64_t p = 0; p < 32; ++p) {
        for (int s = 0; s < 6; ++s) {
          for (int t = 0; s + t < 6; ++t) sums[s + t] += a.digits[p][s] * b.digits[p][t];
        }
      }
      auto value = static_cast<float>(sums[5]);
      for (int w = 4; w >= 0; --w) value = std::fma(value, 0x1p-8F, static_cast<float>(sums[w]));
      acc = std::fma(value, weight(a.exponent - a_.panel(i)) * weight(b.exponent - b_.panel(j)), acc);
    }
    return acc;
  }

  // 32 elements of a vector, as digits of the half-precision program (docs/schemes/mixpert.md, section 4).
  struct Piece {
    Piece(const TileOperand& operand, std::int64_t v, std::int64_t begin) {
      const std::int64_t end = std::min(operand.k(), begin + 32);
      for (std::int64_t p = begin; p < end; ++p) {
        if (operand.at(v, p) != 0) exponent = std::max(exponent, std::ilogb(operand.at(v, p)));
      }
      for (std::int64_t p = begin; p < end; ++p) {
        const float x = operand.at(v, p);
        std::int64_t integer = x == 0 ? 0 : TileOperand::nearest(x, 47 - exponent);
        for (int s = 5; s >= 0; --s) {
          digits[p - begin][s] = x < 0 ? -(integer % 256) : integer % 256;
          integer /= 256;
        }
      }
    }
    int exponent = TileOperand::zeros;
    std::int64_t digits[32][6] = {};
  };

  TileScheme scheme_;
  TileOperand a_;
  TileOperand b_;
};

}  // namespace kintsugi::test
