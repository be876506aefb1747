// Splits with one exponent per tile of vectors and inner indices (SplitKind::tiles).
#pragma once

#include <cstdint>
#include <span>

#include "arith/range.hpp"
#include "arith/split_rule.hpp"
#include "base/embedding.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// Marks the tiles of vectors first ... last - 1 as zero. Does nothing if the slices have no tiles.
void clear_tiles(const Slices& slices, std::int64_t first, std::int64_t last);

// Writes exponents and segments of vectors first ... last - 1, of which the first begins a panel. `ranges`
// have the panels' scales (set_scales()). View: OperandView of float or std::complex<float>.
template <class View>
void split_block_into_tiles(const View& operand, const SplitRule& rule, std::span<const VectorRange> ranges,
                            const Slices& slices, std::int64_t first, std::int64_t last);

// Number of tiles of the vectors, and number of the tiles that fail Eq. 9.
struct TileCounts {
  std::int64_t tiles = 0;
  std::int64_t failing = 0;

  TileCounts& operator+=(const TileCounts& other) {
    tiles += other.tiles;
    failing += other.failing;
    return *this;
  }
};
TileCounts count_tiles(const Slices& slices);

}  // namespace kintsugi::core
