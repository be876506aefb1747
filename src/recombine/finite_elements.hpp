// Loop over the elements of C that a recombination writes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "arith/range.hpp"
#include "base/embedding.hpp"
#include "base/floating_environment.hpp"
#include "base/threads.hpp"

namespace kintsugi::core {

// Size of the tiles of C that a thread writes. Sums are column-major, but C may be row-major. Then each
// element of a column of C is in another cache line, and if the leading dimension is a power of two, all
// these lines are in few sets of the cache. Eight lines of C and eight columns of sums fit the 12 ways of a
// set.
inline constexpr std::int64_t columns_of_tile = 8;
inline constexpr std::int64_t rows_of_tile = 8;

// Calls visit(i, j, element) for every element whose row of A and column of B are finite.
// write_special_values() writes the other elements. `columns` has parts_of<T> vectors for each column of C.
// The two vectors of a complex column have the same elements of B, so only the first one is tested.
template <class T, class Visit>
void for_each_finite_element(std::span<const VectorRange> rows, std::span<const VectorRange> columns,
                             const MatrixView<T>& c, int threads, const Visit& visit) {
  const std::int64_t tiles = (c.columns + columns_of_tile - 1) / columns_of_tile;
#pragma omp parallel for num_threads(workers_for(tiles, threads)) schedule(static)
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const FloatingEnvironment environment;
    const std::int64_t first_column = tile * columns_of_tile;
    const std::int64_t end_column = std::min(first_column + columns_of_tile, c.columns);
    for (std::int64_t first_row = 0; first_row < c.rows; first_row += rows_of_tile) {
      const std::int64_t end_row = std::min(first_row + rows_of_tile, c.rows);
      for (std::int64_t j = first_column; j < end_column; ++j) {
        if (!columns[parts_of<T> * j].finite()) continue;
        for (std::int64_t i = first_row; i < end_row; ++i) {
          if (rows[i].finite()) visit(i, j, c(i, j));
        }
      }
    }
  }
}

}  // namespace kintsugi::core
