#include "split/split.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "arith/tile_arithmetic.hpp"
#include "base/vectorised.hpp"
#include "split/vector_blocks.hpp"

namespace kintsugi::core {

namespace {

// Like TileExponentSum, for one vector of a tile. The values are valid only if `subnormals` is 0.
struct NormalExponents {
  std::int32_t largest = TileExponent::none;
  std::int32_t sum = 0;
  std::int32_t elements = 0;    // number of elements that are not zero
  std::int32_t subnormals = 0;  // number of subnormal elements
};

// Sets `exponents` from `count` finite elements, at most deepest_tile. The exponent of a normal element after
// rounding to all segments (rounded_exponent()) is found by adding half a unit of the last kept bit to the
// element's bits. If rounding reaches the next power of two, this addition carries into the exponent field.
KINTSUGI_VECTORIZED void find_normal_exponents(const float* elements, std::int64_t count, int segments,
                                               NormalExponents& exponents) {
  const int dropped = 24 - segments * segment_bits;
  const std::int32_t half = dropped > 0 ? 1 << (dropped - 1) : 0;
  std::int32_t largest = TileExponent::none;
  std::int32_t sum = 0;
  std::int32_t nonzero = 0;
  std::int32_t subnormals = 0;
  for (std::int64_t p = 0; p < count; ++p) {
    const std::int32_t magnitude = std::bit_cast<std::int32_t>(elements[p]) & 0x7fffffff;
    const std::int32_t exponent = ((magnitude + half) >> 23) - 127;
    const std::int32_t nonzero_mask = magnitude != 0 ? -1 : 0;
    const std::int32_t counted = nonzero_mask != 0 ? exponent : TileExponent::none;
    largest = largest > counted ? largest : counted;
    sum += exponent & nonzero_mask;
    nonzero -= nonzero_mask;
    subnormals -= magnitude < 0x800000 ? nonzero_mask : 0;
  }
  exponents = {.largest = largest, .sum = sum, .elements = nonzero, .subnormals = subnormals};
}

void add_exponents(const float* elements, std::int64_t count, int segments, TileExponentSum& exponents) {
  NormalExponents normal;
  find_normal_exponents(elements, count, segments, normal);
  if (normal.subnormals == 0) {
    exponents.largest = std::max(exponents.largest, normal.largest);
    exponents.sum += normal.sum;
    exponents.elements += normal.elements;
    return;
  }
  for (std::int64_t p = 0; p < count; ++p) {
    if (elements[p] != 0.0F) exponents.add(rounded_exponent(elements[p], segments));
  }
}

// Writes the integers of `count` elements (tile_integer()) with their signs. `scale` is a power of two. The
// addition of 2^52 rounds to the nearest integer, ties to even, which is then in the last bits of the sum.
KINTSUGI_VECTORIZED void round_elements(const float* elements, std::int64_t count, double scale,
                                        std::int32_t* integers) {
  constexpr double rounder = 0x1p52;
  for (std::int64_t p = 0; p < count; ++p) {
    const double scaled = std::fabs(static_cast<double>(elements[p])) * scale;
    const auto integer = static_cast<std::int32_t>(std::bit_cast<std::int64_t>(scaled + rounder));
    integers[p] = elements[p] < 0 ? -integer : integer;
  }
}

// Writes one segment of `count` integers: segment_bits bits of the magnitude from bit `shift` on, with the
// integer's sign.
KINTSUGI_VECTORIZED void write_segment(const std::int32_t* integers, std::int64_t count, int shift,
                                       std::int8_t* segment) {
  constexpr std::int32_t mask = (1 << segment_bits) - 1;
  for (std::int64_t p = 0; p < count; ++p) {
    const std::int32_t magnitude = integers[p] < 0 ? -integers[p] : integers[p];
    const std::int32_t digit = (magnitude >> shift) & mask;
    segment[p] = static_cast<std::int8_t>(integers[p] < 0 ? -digit : digit);
  }
}

// The elements of one tile. NaN and infinities are replaced by zeros.
struct TileElements {
  static constexpr std::int64_t max_vectors = vectors_per_block;

  float elements[max_vectors][deepest_tile];
  std::int64_t vectors;
  std::int64_t depth;  // inner indices

  // Loads `vector_count` vectors from vector `first` on: `length` elements of each, from inner index `begin`
  // on.
  template <class View>
  void load(const View& operand, std::int64_t first, std::int64_t vector_count, std::int64_t begin,
            std::int64_t length) {
    vectors = vector_count;
    depth = length;
    const auto load_element = [&](std::int64_t v, std::int64_t p) {
      const float x = operand(first + v, begin + p);
      elements[v][p] = x - x == 0.0F ? x : 0.0F;
    };
    if (element_stride(operand) == 1) {
      for (std::int64_t v = 0; v < vectors; ++v) {
        for (std::int64_t p = 0; p < depth; ++p) load_element(v, p);
      }
    } else {
      for (std::int64_t p = 0; p < depth; ++p) {
        for (std::int64_t v = 0; v < vectors; ++v) load_element(v, p);
      }
    }
  }

  TileExponentSum exponent_sum(int segments) const {
    TileExponentSum sum;
    for (std::int64_t v = 0; v < vectors; ++v) add_exponents(elements[v], depth, segments, sum);
    return sum;
  }
};

void write_segments(const TileElements& tile, int exponent, const Slices& slices, std::int64_t first,
                    std::int64_t begin) {
  const double scale = power_of_two(slices.count * segment_bits - 1 - exponent);
  std::int32_t integers[deepest_tile];
  for (std::int64_t v = 0; v < tile.vectors; ++v) {
    round_elements(tile.elements[v], tile.depth, scale, integers);
    for (int s = 0; s < slices.count; ++s) {
      write_segment(integers, tile.depth, segment_bits * (slices.count - 1 - s),
                    slices.vector<std::int8_t>(s, first + v) + begin);
    }
  }
}

void clear_segments(const TileElements& tile, const Slices& slices, std::int64_t first, std::int64_t begin) {
  for (int s = 0; s < slices.count; ++s) {
    for (std::int64_t v = 0; v < tile.vectors; ++v)
      std::fill_n(slices.vector<std::int8_t>(s, first + v) + begin, tile.depth, std::int8_t{0});
  }
}

}  // namespace

void clear_tiles(const Slices& slices, std::int64_t first, std::int64_t last) {
  if (slices.tile_depth == 0) return;
  for (std::int64_t v = first; v < last; v += slices.tile_vectors)
    std::fill_n(&slices.tile(v, 0), slices.tiles_of_vector(), TileExponent{});
}

template <class View>
void split_block_into_tiles(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                            const Slices& slices, std::int64_t first, std::int64_t last) {
  TileElements tile;
  for (std::int64_t v = first; v < last; v += rule.tile_vectors) {
    const std::int64_t vectors = std::min<std::int64_t>(rule.tile_vectors, last - v);
    const std::int64_t panel_exponent = -ranges[v].scale;
    for (std::int64_t begin = 0; begin < slices.k; begin += rule.tile_depth) {
      tile.load(operand, v, vectors, begin, std::min<std::int64_t>(rule.tile_depth, slices.k - begin));
      const TileExponentSum exponents = tile.exponent_sum(rule.slices);
      TileExponent& exponent = slices.tile(v, begin / rule.tile_depth);
      exponent = {};
      if (exponents.elements != 0) {
        exponent = {.exponent = static_cast<std::int16_t>(exponents.largest),
                    .difference = static_cast<std::int16_t>(exponents.largest - panel_exponent),
                    .fails = exponents.exceeds(rule.mean_depth_limit) ? 1 : 0};
      }
      if (exponents.elements == 0 || exponent.fails != 0) {
        clear_segments(tile, slices, v, begin);
      } else {
        write_segments(tile, exponents.largest, slices, v, begin);
      }
    }
  }
}

TileCounts count_tiles(const Slices& slices) {
  TileCounts counts;
  if (slices.tile_depth == 0) return counts;
  const std::int64_t panels = divide_up(slices.vectors, slices.tile_vectors);
  counts.tiles = panels * slices.tiles_of_vector();
  for (std::int64_t t = 0; t < counts.tiles; ++t) counts.failing += slices.tiles[t].fails;
  return counts;
}

template void split_block_into_tiles(const MatrixView<const float>&, const SplitRule&,
                                     std::span<const VectorRange>, const Slices&, std::int64_t, std::int64_t);
template void split_block_into_tiles(const EmbeddedView<float>&, const SplitRule&,
                                     std::span<const VectorRange>, const Slices&, std::int64_t, std::int64_t);

}  // namespace kintsugi::core
