// Slices of one operand: every vector along k is contiguous, or interleaved with others in a panel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arith/split_rule.hpp"
#include "arith/tile_arithmetic.hpp"
#include "base/memory.hpp"
#include "base/view.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// Storage of elements:
//   packed  the format's own bit patterns. Element p of vector v of slice s has the index s * slice_stride +
//           v * vector_stride + p. Vectors from `vectors` to padded_vectors - 1 and elements from k to
//           vector_stride - 1 are zero.
//   panels  the same values converted to fp32, for kernels whose SIMD lanes are vectors. A panel is 16
//           interleaved vectors: element p of vector v has the index s * slice_stride + v / 16 * 16 *
//           vector_stride + 16 * p + v % 16. Vectors that fill the last panel are zero; nothing else is
//           padded.
enum class SliceStorage : std::uint8_t { packed, panels };

struct Slices {
  // The engines' tiles and k-blocks divide these multiples, so that no tile or k-block is partial.
  static constexpr std::int64_t vector_multiple = 128;
  static constexpr std::int64_t k_multiple = 64;
  static constexpr std::int64_t panel_vectors = 16;

  std::byte* data = nullptr;
  const Format* format = nullptr;
  SliceStorage storage = SliceStorage::packed;
  int count = 0;
  std::int64_t vectors = 0;            // vectors in this view
  std::int64_t allocated_vectors = 0;  // vectors of each slice in memory, a multiple of vector_multiple
  std::int64_t k = 0;
  // Exponents per tile, stored after the slices. The exponents of the first tile_vectors vectors lie one
  // after the other, followed by the exponents of the next tile_vectors vectors. tile_depth is the number of
  // inner indices of a tile; 0: there are no tiles.
  int tile_vectors = 0;
  int tile_depth = 0;
  TileExponent* tiles = nullptr;
  // On a device, the next two members replace `tiles`. tile_weights[t * tile_panels() + panel] is the weight
  // of tile t of a panel of tiles (tile_weight() of arith/tile_arithmetic.hpp). The weight is -0 if the tile
  // fails Eq. 9. tile_failures[panel] is the number of the panel's tiles that fail.
  float* tile_weights = nullptr;
  std::int32_t* tile_failures = nullptr;

  std::int64_t padded_vectors() const { return round_up(vectors, vector_multiple); }
  std::int64_t vector_stride() const { return round_up(k, k_multiple); }
  std::int64_t slice_stride() const { return allocated_vectors * vector_stride(); }
  std::size_t element_bytes() const {
    return storage == SliceStorage::panels ? sizeof(float) : static_cast<std::size_t>(format->storage_bytes);
  }
  std::size_t slice_bytes() const {
    return array_bytes(count * allocated_vectors, vector_stride(), element_bytes());
  }
  std::int64_t tiles_of_vector() const { return tile_depth == 0 ? 0 : divide_up(k, tile_depth); }
  std::size_t tile_bytes() const {
    if (tile_depth == 0) return 0;
    return array_bytes(allocated_vectors / tile_vectors, tiles_of_vector(), sizeof(TileExponent));
  }
  std::size_t bytes() const { return slice_bytes() + tile_bytes(); }

  // Sets the memory, of bytes() bytes.
  void place(std::byte* memory) {
    data = memory;
    tiles = tile_depth == 0 || memory == nullptr ? nullptr
                                                 : reinterpret_cast<TileExponent*>(memory + slice_bytes());
  }

  // Number of panels of tiles. Such a panel is all tiles of the same tile_vectors vectors.
  std::int64_t tile_panels() const { return allocated_vectors / tile_vectors; }

  // Like place(), for the slices of batch items in a device's memory of items * bytes() bytes. The memory has
  // first the slices of all items, then the weights of all their tiles, then the panels' numbers of failing
  // tiles.
  void place_items(std::byte* memory, std::int64_t items) {
    data = memory;
    if (tile_depth == 0 || memory == nullptr) return;
    tile_weights = reinterpret_cast<float*>(memory + static_cast<std::size_t>(items) * slice_bytes());
    tile_failures = reinterpret_cast<std::int32_t*>(tile_weights + items * tile_panels() * tiles_of_vector());
  }
  // Returns the slices of batch item `index`, where *this has those of item 0 (place_items()).
  Slices item(std::int64_t index) const {
    Slices selected = *this;
    if (data == nullptr) return selected;
    selected.data += static_cast<std::size_t>(index) * slice_bytes();
    if (tile_weights == nullptr) return selected;
    selected.tile_weights += index * tile_panels() * tiles_of_vector();
    selected.tile_failures += index * tile_panels();
    return selected;
  }

  TileExponent& tile(std::int64_t v, std::int64_t index) const {
    return tiles[v / tile_vectors * tiles_of_vector() + index];
  }

  // View of `vector_count` vectors from `first` on; `first` is a multiple of vector_multiple.
  Slices block(std::int64_t first, std::int64_t vector_count) const {
    Slices selected = *this;
    selected.data += static_cast<std::size_t>(first * vector_stride()) * element_bytes();
    selected.vectors = vector_count;
    if (tiles != nullptr) selected.tiles += first / tile_vectors * tiles_of_vector();
    if (tile_weights != nullptr) {
      selected.tile_weights += first / tile_vectors;
      selected.tile_failures += first / tile_vectors;
    }
    return selected;
  }

  // Returns the first element of a vector; the others follow at distances of element_stride().
  template <class T>
  T* vector(int slice, std::int64_t v) const {
    const std::int64_t place_in_panel = storage == SliceStorage::panels ? v % panel_vectors : 0;
    return reinterpret_cast<T*>(data) + slice * slice_stride() + (v - place_in_panel) * vector_stride() +
           place_in_panel;
  }
  std::int64_t element_stride() const { return storage == SliceStorage::panels ? panel_vectors : 1; }
};

inline Slices make_slices(const Format& format, SliceStorage storage, int count, std::int64_t vectors,
                          std::int64_t k) {
  return {nullptr, &format, storage, count, vectors, round_up(vectors, Slices::vector_multiple), k};
}

// Returns the slices that the rule makes, with the exponents of tiles if it has any.
inline Slices make_slices(const SplitRule& rule, SliceStorage storage, std::int64_t vectors, std::int64_t k) {
  Slices slices = make_slices(*rule.format, storage, rule.slices, vectors, k);
  slices.tile_vectors = rule.tile_vectors;
  slices.tile_depth = rule.tile_depth;
  return slices;
}

// Number of tiles of the vectors, and number of the tiles that fail Eq. 9 of MixPert.
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
