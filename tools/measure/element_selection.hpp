// Selection of the elements of C that a check visits: all of them, or a reproducible sample.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/view.hpp"

namespace kintsugi::measure {

// Elements are visited in tiles of tile_size x tile_size positions, so that a gathered row is used for
// several columns. Position p is row rows[p]; the last tiles may be cut off.
struct Selection {
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> columns;
  std::int64_t tile_size = 0;
  std::vector<std::int64_t> tiles;  // numbers of the tiles to visit, counted along rows of tiles
  std::int64_t elements = 0;

  std::int64_t tiles_across() const { return core::divide_up(std::ssize(columns), tile_size); }
  std::int64_t first_row(std::int64_t tile) const { return tile / tiles_across() * tile_size; }
  std::int64_t first_column(std::int64_t tile) const { return tile % tiles_across() * tile_size; }
  std::int64_t row_count(std::int64_t tile) const {
    return std::min(tile_size, std::ssize(rows) - first_row(tile));
  }
  std::int64_t column_count(std::int64_t tile) const {
    return std::min(tile_size, std::ssize(columns) - first_column(tile));
  }
  std::int64_t element_count(std::int64_t tile) const { return row_count(tile) * column_count(tile); }
};

// Selects all m n elements if m n k <= work_limit or m n <= max_elements; else about max_elements of them, at
// most 15 more, without repetition, including the four corners. Precondition: m, n > 0.
Selection select_elements(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t work_limit,
                          std::int64_t max_elements, std::uint64_t seed);

}  // namespace kintsugi::measure
