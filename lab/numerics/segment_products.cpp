#include "lab/numerics/segment_products.hpp"

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
    const float x = mantissa(random);
    const float y = mantissa(random);
    const Packed a = pack(x, rounding);
    const Packed b = pack(y, rounding);
    const double product =
        std::ldexp(static_cast<double>(products(a.integer, b.integer, 3)), a.exponent + b.exponent - 40);
    const double exact = static_cast<double>(x) * static_cast<double>(y);
    const double error = std::fabs(product - exact) / exact;
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
    const float x = mantissa(random);
    const float y = mantissa(random);
    const Packed a = pack(x, SegmentRounding::nearest);
    const Packed b = pack(y, SegmentRounding::nearest);
    const double exact = static_cast<double>(x) * static_cast<double>(y);
    const auto error = [&](int last) {
      const auto sum = static_cast<float>(products(a.integer, b.integer, last));
      const double product = std::ldexp(static_cast<double>(sum), a.exponent + b.exponent - 40);
      return std::fabs(product - exact) / exact / static_cast<double>(samples);
    };
    errors.eight += error(3);
    errors.nine += error(4);
  }
  return errors;
}

}  // namespace kintsugi::lab
