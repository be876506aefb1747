// Tiles of C whose elements are summed exactly, and copies of their vectors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/embedding.hpp"
#include "base/floating_environment.hpp"
#include "base/memory.hpp"
#include "base/threads.hpp"
#include "base/view.hpp"
#include "recombine/sum_kernels.hpp"

namespace kintsugi::core {

// A tile of C is computed at once, and its vectors are copied to contiguous memory piece by piece.
inline constexpr std::int64_t exact_tile_rows = 64;
inline constexpr std::int64_t exact_tile_vectors = 64;  // vectors of B
inline constexpr std::int64_t exact_packed_elements = 128 * (exact_tile_rows + exact_tile_vectors);

// Sizes of a worker's memory. All tiles of a product fit.
struct ExactTileMemory {
  std::int64_t rows;     // rows of a tile, whole panels
  std::int64_t vectors;  // vectors of B of a tile, whole panels
  std::int64_t packed;   // doubles for packed elements

  ExactTileMemory(std::int64_t m, std::int64_t vectors_b, std::int64_t k)
      : rows(round_up(std::min(m, exact_tile_rows), sum_panel_rows)),
        vectors(round_up(std::min(vectors_b, exact_tile_vectors), sum_panel_columns)),
        packed(std::min(exact_packed_elements, (rows + vectors) * round_up(k, sum_panel_rows))) {}

  std::size_t bytes() const {
    return aligned_size(static_cast<std::size_t>(packed + 3 * rows * vectors) * sizeof(double));
  }
};

// Copies `length` elements from inner index `first` on of each vector. Element p of vector v comes to
// [v % width + width (p + length (v / width))]; missing vectors of the last panel are zeros.
template <std::int64_t width, class View>
void pack_vectors(const View& vectors, std::int64_t first, std::int64_t length, double* target) {
  for (std::int64_t begin = 0; begin < vectors.rows; begin += width, target += width * length) {
    const std::int64_t count = std::min(width, vectors.rows - begin);
    if (count < width) std::fill_n(target, width * length, 0.0);
    for (std::int64_t v = 0; v < count; ++v) {
      for (std::int64_t p = 0; p < length; ++p) target[v + p * width] = vectors(begin + v, first + p);
    }
  }
}

template <std::int64_t width, class T>
void pack_vectors(const MatrixView<const T>& vectors, std::int64_t first, std::int64_t length,
                  double* target) {
  for (std::int64_t begin = 0; begin < vectors.rows; begin += width, target += width * length) {
    const std::int64_t count = std::min(width, vectors.rows - begin);
    const T* source = &vectors(begin, first);
    if (width == 1 && vectors.column_stride == 1) {
      std::copy_n(source, length, target);
      continue;
    }
    if (count == width && vectors.row_stride == 1) {
      for (std::int64_t p = 0; p < length; ++p) {
        for (std::int64_t v = 0; v < width; ++v)
          target[v + p * width] = source[v + p * vectors.column_stride];
      }
      continue;
    }
    if (count < width) std::fill_n(target, width * length, 0.0);
    for (std::int64_t v = 0; v < count; ++v) {
      for (std::int64_t p = 0; p < length; ++p)
        target[v + p * width] = source[v * vectors.row_stride + p * vectors.column_stride];
    }
  }
}

// Part of C: elements from (row, column) on.
struct ExactTileShape {
  std::int64_t row;
  std::int64_t column;
  std::int64_t rows;
  std::int64_t columns;
};

// Calls visit(shape, memory) for all tiles of C, in parallel. Workers have memory of their own.
template <class T, class Visit>
void for_each_exact_tile(const MatrixView<T>& c, const ExactTileMemory& sizes, std::byte* scratch,
                         int threads, const Visit& visit) {
  constexpr std::int64_t tile_columns = exact_tile_vectors / parts_of<T>;
  const std::int64_t tiles_of_column = divide_up(c.rows, exact_tile_rows);
  const std::int64_t tiles = tiles_of_column * divide_up(c.columns, tile_columns);
  const int workers = workers_for(tiles, threads);
  const auto work = [&](int worker) {
    const FloatingEnvironment environment;
    std::byte* const memory = scratch + static_cast<std::size_t>(worker) * sizes.bytes();
    for (std::int64_t index = worker; index < tiles; index += workers) {
      const std::int64_t row = index % tiles_of_column * exact_tile_rows;
      const std::int64_t column = index / tiles_of_column * tile_columns;
      visit(ExactTileShape{row, column, std::min(exact_tile_rows, c.rows - row),
                           std::min(tile_columns, c.columns - column)},
            memory);
    }
  };
  if (workers == 1) return work(0);  // without a team, as for_each_vector_block()
#pragma omp parallel for num_threads(workers) schedule(static, 1)
  for (int worker = 0; worker < workers; ++worker) work(worker);
}

}  // namespace kintsugi::core
