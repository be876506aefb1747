// The loop over tiles of C that engines of the host share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "base/view.hpp"

namespace kintsugi::core {

// Tiles of a matrix of `rows` x `columns` elements. Those at its end may be smaller.
struct TileGrid {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t tile_rows;
  std::int64_t tile_columns;

  std::int64_t count() const { return divide_up(rows, tile_rows) * divide_up(columns, tile_columns); }
};

// Calls visit(row, column, scratch) for every tile, in parallel; (row, column) is its first element. Every
// worker has its own `worker_bytes` bytes of scratch. A worker is an index of this loop and not an OpenMP
// thread number: so no two workers share scratch memory, whatever the OpenMP runtime does.
template <class Visit>
void for_each_tile(const TileGrid& grid, int threads, std::byte* scratch, std::size_t worker_bytes,
                   const Visit& visit) {
  const std::int64_t rows_of_tiles = divide_up(grid.rows, grid.tile_rows);
  const std::int64_t tiles = grid.count();
  const int workers = workers_for(tiles, threads);
#pragma omp parallel for num_threads(workers) schedule(static, 1)
  for (int worker = 0; worker < workers; ++worker) {
    const FloatingEnvironment environment;
    for (std::int64_t tile = worker; tile < tiles; tile += workers)
      visit(tile % rows_of_tiles * grid.tile_rows, tile / rows_of_tiles * grid.tile_columns,
            scratch + static_cast<std::size_t>(worker) * worker_bytes);
  }
}

}  // namespace kintsugi::core
