#include "lab/numerics/tile_ranges.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "arith/tile_arithmetic.hpp"
#include "tools/measure/generators/random.hpp"

namespace kintsugi::lab {
namespace {

constexpr int segments = 3;
constexpr int depth = 32;
constexpr int delta = 5;  // floor(log2 32)

// Vectors of 32 inner indices that share one exponent.
template <int Vectors>
struct RandomTile {
  std::array<std::array<float, depth>, Vectors> elements;
  core::TileExponentSum depths;

  RandomTile(int binades, measure::Random& random) {
    for (auto& vector : elements) {
      for (float& x : vector) {
        const auto exponent = static_cast<int>(random.integer(-binades, 0));
        x = std::ldexp(std::bit_cast<float>(0x3f800000U | static_cast<std::uint32_t>(random.bits() >> 41)),
                       exponent);
        if (random.flip()) x = -x;
        depths.add(core::rounded_exponent(x, segments));
      }
    }
  }

  std::int32_t segment(int v, int p, int s) const {
    const float x = elements[v][p];
    return core::tile_segment(core::tile_integer(x, depths.largest, segments), x < 0, segments, s);
  }

  double range() const {
    float largest = 0;
    float smallest = HUGE_VALF;
    for (const auto& vector : elements) {
      for (const float x : vector) {
        largest = std::max(largest, std::fabs(x));
        smallest = std::min(smallest, std::fabs(x));
      }
    }
    return largest / smallest;
  }
};

// Element (i, j) by level IV.
double product_of(const RandomTile<16>& a, int i, const RandomTile<8>& b, int j) {
  std::array<std::int32_t, 4> sums{};
  for (int p = 0; p < depth; ++p) {
    for (int s = 0; s < segments; ++s) {
      for (int t = 0; t < segments && s + t < 4; ++t) sums[s + t] += a.segment(i, p, s) * b.segment(j, p, t);
    }
  }
  const float value = core::tile_value(sums[0], sums[1], sums[2], sums[3]);
  return std::ldexp(static_cast<double>(value), a.depths.largest + b.depths.largest - 19);
}

// Squares of errors and of the exact product, over all tiles.
struct Squares {
  double exact = 0;
  double segments = 0;
  double native = 0;
  double componentwise = 0;

  void add(const RandomTile<16>& a, int i, const RandomTile<8>& b, int j) {
    double sum = 0;
    double magnitudes = 0;
    float native_sum = 0;
    for (int p = 0; p < depth; ++p) {
      const double product = static_cast<double>(a.elements[i][p]) * static_cast<double>(b.elements[j][p]);
      sum += product;
      magnitudes += std::fabs(product);
      native_sum = std::fma(a.elements[i][p], b.elements[j][p], native_sum);
    }
    const double error = product_of(a, i, b, j) - sum;
    const double native_error = static_cast<double>(native_sum) - sum;
    exact += sum * sum;
    segments += error * error;
    native += native_error * native_error;
    componentwise = std::max(componentwise, std::fabs(error) / magnitudes);
  }
};

}  // namespace

RangeErrors measure_tile_ranges(int binades, std::int64_t tiles, std::uint64_t seed) {
  RangeErrors errors{.binades = binades};
  Squares squares;
  std::int64_t failing = 0;
  std::int64_t beyond_32 = 0;
  measure::Random random(seed, static_cast<std::uint64_t>(binades));
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const RandomTile<16> a(binades, random);
    const RandomTile<8> b(binades, random);
    const core::TileExponentSum& depths = a.depths;
    const auto above = static_cast<double>(depths.elements * (depths.largest - delta) - depths.sum);
    errors.delta += above / 16 / depth / static_cast<double>(tiles);
    failing += depths.exceeds(delta) ? 1 : 0;
    beyond_32 += a.range() > 32 ? 1 : 0;
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 8; ++j) squares.add(a, i, b, j);
    }
  }
  errors.failing = static_cast<double>(failing) / static_cast<double>(tiles);
  errors.beyond_32 = static_cast<double>(beyond_32) / static_cast<double>(tiles);
  errors.segments = std::sqrt(squares.segments / squares.exact);
  errors.native = std::sqrt(squares.native / squares.exact);
  errors.componentwise = squares.componentwise;
  return errors;
}

}  // namespace kintsugi::lab
