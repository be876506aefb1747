#include "split/tiles.hpp"

#include <algorithm>
#include <cmath>

#include "arith/tile_arithmetic.hpp"
#include "split/vector_blocks.hpp"

namespace kintsugi::core {

namespace {

// The elements of one tile, NaN and infinities as zeros.
struct TileElements {
  static constexpr std::int64_t most_vectors = vectors_per_block;

  float elements[most_vectors][deepest_tile];
  std::int64_t vectors;
  std::int64_t depth;

  template <class View>
  void load(const View& operand, std::int64_t first, std::int64_t number, std::int64_t begin,
            std::int64_t length) {
    vectors = number;
    depth = length;
    for (std::int64_t v = 0; v < vectors; ++v) {
      for (std::int64_t p = 0; p < depth; ++p) {
        const float x = operand(first + v, begin + p);
        elements[v][p] = x - x == 0.0F ? x : 0.0F;
      }
    }
  }

  TileDepth depths(int segments) const {
    TileDepth depths;
    for (std::int64_t v = 0; v < vectors; ++v) {
      for (std::int64_t p = 0; p < depth; ++p) {
        if (elements[v][p] != 0.0F) depths.add(rounded_exponent(elements[v][p], segments));
      }
    }
    return depths;
  }
};

void write_segments(const TileElements& tile, int exponent, const Slices& slices, std::int64_t first,
                    std::int64_t begin) {
  const int segments = slices.count;
  for (std::int64_t v = 0; v < tile.vectors; ++v) {
    for (std::int64_t p = 0; p < tile.depth; ++p) {
      const float x = tile.elements[v][p];
      const std::uint32_t integer = tile_integer(x, exponent, segments);
      for (int s = 0; s < segments; ++s)
        slices.vector<std::int8_t>(s, first + v)[begin + p] = tile_segment(integer, x < 0, segments, s);
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
      const TileDepth depths = tile.depths(rule.slices);
      TileExponent& target = slices.tile(v, begin / rule.tile_depth);
      target = {};
      if (depths.elements != 0) {
        target = {static_cast<std::int16_t>(depths.largest),
                  static_cast<std::int16_t>(depths.largest - panel_exponent),
                  depths.exceeds(rule.depth_limit) ? 1 : 0};
      }
      if (depths.elements == 0 || target.fails != 0) {
        clear_segments(tile, slices, v, begin);
      } else {
        write_segments(tile, depths.largest, slices, v, begin);
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
