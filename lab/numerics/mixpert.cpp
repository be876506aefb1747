#include "lab/numerics/mixpert.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <initializer_list>

#include "arith/tile_arithmetic.hpp"
#include "tools/measure/generators/random.hpp"

namespace kintsugi::lab {
namespace {

constexpr int segments = 3;

// Returns x', the number with these segments, in units of 2^-6.
double sum_of_segments(int x0, int x1, int x2, int x3) {
  return x0 + x1 * 0x1p-7 + x2 * 0x1p-14 + x3 * 0x1p-21;
}

// Means of x_0 / x' and of x_3 / x' for one x_0.
struct LeadingMeans {
  double leading = 0;
  double discarded = 0;
};

LeadingMeans means_of(int x0) {
  LeadingMeans means;
  for (int x1 = 0; x1 < 128; ++x1) {
    for (int x2 = 0; x2 < 128; ++x2) {
      for (const int x3 : {0, 16, 32, 48}) {
        const double reciprocal = 1 / sum_of_segments(x0, x1, x2, x3);
        means.leading += x0 * reciprocal;
        means.discarded += x3 * reciprocal;
      }
    }
  }
  constexpr double count = 128.0 * 128 * 4;
  return {means.leading / count, means.discarded / count};
}

// e_gamma of two equal operands without x_1 and x_2.
double worst_of(int discarded) {
  const double x = sum_of_segments(64, 0, 0, discarded);
  return 2 * 64.0 * discarded * 0x1p-21 / (x * x);
}

// Products x_i y_j with i + j <= last, in units of 2^-40: x and y are integers of three segments.
std::int64_t products(std::uint32_t x, std::uint32_t y, int last) {
  std::int64_t sum = 0;
  for (int i = 0; i < segments; ++i) {
    for (int j = 0; j < segments && i + j <= last; ++j) {
      const std::int64_t product =
          std::int64_t{core::tile_segment(x, false, segments, i)} * core::tile_segment(y, false, segments, j);
      sum += product << (core::segment_bits * (4 - i - j));
    }
  }
  return sum;
}

// A number of [1, 2) in 21 bits, times 2^exponent.
struct Packed {
  std::uint32_t integer;
  int exponent;
};

Packed pack(float x, SegmentRounding rounding) {
  if (rounding == SegmentRounding::towards_zero)
    return {core::normalized_float(x).significand >> (24 - segments * core::segment_bits), 0};
  const int exponent = core::rounded_exponent(x, segments);
  return {core::tile_integer(x, exponent, segments), exponent};
}

float mantissa(measure::Random& random) {
  return std::bit_cast<float>(0x3f800000U | static_cast<std::uint32_t>(random.bits() >> 41));
}

// Two random numbers, exact and in segments.
struct RandomPair {
  float x, y;
  Packed a, b;

  RandomPair(measure::Random& random, SegmentRounding rounding)
      : x(mantissa(random)), y(mantissa(random)), a(pack(x, rounding)), b(pack(y, rounding)) {}

  std::int64_t sum(int last) const { return products(a.integer, b.integer, last); }
  // Returns the relative error of a sum of products.
  double error(double sum_of_products) const {
    const double exact = static_cast<double>(x) * static_cast<double>(y);
    return std::fabs(std::ldexp(sum_of_products, a.exponent + b.exponent - 40) - exact) / exact;
  }
};

// ------------------------------------------------------------------ tiles

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
        x = std::ldexp(mantissa(random), exponent);
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

EnumeratedErrors enumerate_segment_products() {
  std::array<LeadingMeans, 128> means{};
  for (int x0 = 64; x0 < 128; ++x0) means[x0] = means_of(x0);
  double sum = 0;
  std::int64_t pairs = 0;
  for (int x0 = 64; x0 < 128; ++x0) {
    for (int y0 = 64; x0 * y0 < 1 << 13 && y0 < 128; ++y0) {
      sum += means[x0].leading * means[y0].discarded + means[x0].discarded * means[y0].leading;
      ++pairs;
    }
  }
  return {.expectation = sum * 0x1p-21 / static_cast<double>(pairs),
          .worst = worst_of(48),
          .worst_nearest = 2 * 64.0 * 64 * 0x1p-33};
}

SimulatedErrors simulate_segment_products(std::int64_t samples, std::uint64_t seed,
                                          SegmentRounding rounding) {
  measure::Random random(seed);
  SimulatedErrors errors;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const RandomPair pair(random, rounding);
    const double error = pair.error(static_cast<double>(pair.sum(3)));
    errors.mean += error / static_cast<double>(samples);
    errors.largest = std::max(errors.largest, error);
  }
  return errors;
}

double largest_segment_error() {
  double largest = 0;
  for (std::uint32_t bits = 0x3f800000U; bits < 0x40000000U; ++bits) {
    const auto x = std::bit_cast<float>(bits);
    const Packed packed = pack(x, SegmentRounding::nearest);
    const double kept = std::ldexp(static_cast<double>(packed.integer), packed.exponent - 20);
    largest = std::max(largest, std::fabs(kept / static_cast<double>(x) - 1));
  }
  return largest;
}

NinthProduct simulate_ninth_product(std::int64_t samples, std::uint64_t seed) {
  measure::Random random(seed);
  NinthProduct errors;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const RandomPair pair(random, SegmentRounding::nearest);
    const auto rounded_error = [&](int last) {
      return pair.error(static_cast<double>(static_cast<float>(pair.sum(last)))) /
             static_cast<double>(samples);
    };
    errors.eight += rounded_error(3);
    errors.nine += rounded_error(4);
  }
  return errors;
}

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
