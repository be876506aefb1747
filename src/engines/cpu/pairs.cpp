#include "engines/cpu/products.hpp"

#include <algorithm>

#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "base/vectorised.hpp"
#include "engines/pair_element.hpp"

namespace kintsugi::core {

namespace {

// normalized() for many pairs, without a branch. A number that is infinite or NaN gets a zero low word.
KINTSUGI_VECTORIZED void normalize(double* high, double* low, std::int64_t count) {
  for (std::int64_t e = 0; e < count; ++e) {
    const double sum = high[e] + low[e];
    const double added = sum - high[e];
    const double error = (high[e] - (sum - added)) + (low[e] - added);
    high[e] = high[e] - high[e] == 0 ? sum : high[e];
    low[e] = sum - sum == 0 ? error : 0;
  }
}

// Packs element (v, p) of `vectors` to high[v + p width] and low[v + p width], for v < width and p < length.
// Vectors outside the matrix are packed as zeros.
void pack(const MatrixView<const DoubleDouble>& vectors, std::int64_t width, std::int64_t length,
          double* high, double* low) {
  alignas(64) double line_high[std::max(pair_rows, pair_length)] = {};
  alignas(64) double line_low[std::max(pair_rows, pair_length)] = {};
  const bool along_k = vectors.column_stride == 1;
  if (vectors.rows < width) {
    std::fill_n(high, width * length, 0.0);
    std::fill_n(low, width * length, 0.0);
  }
  for (std::int64_t l = 0; l < (along_k ? vectors.rows : length); ++l) {
    const std::int64_t count = along_k ? length : vectors.rows;
    const DoubleDouble* source = along_k ? &vectors(l, 0) : &vectors(0, l);
    const std::int64_t stride = along_k ? 1 : vectors.row_stride;
    for (std::int64_t e = 0; e < count; ++e) {
      line_high[e] = source[e * stride].hi;
      line_low[e] = source[e * stride].lo;
    }
    normalize(line_high, line_low, count);
    const std::int64_t first = along_k ? l : l * width;
    const std::int64_t step = along_k ? width : 1;
    for (std::int64_t e = 0; e < count; ++e) {
      high[first + e * step] = line_high[e];
      low[first + e * step] = line_low[e];
    }
  }
}

// Computes the tile of C that begins at (row, column).
void multiply_tile(const NativeProduct<DoubleDouble>& task, const PairKernels& kernels, std::int64_t row,
                   std::int64_t column) {
  PairTile tile;
  const std::int64_t rows = std::min(pair_rows, task.c.rows - row);
  const std::int64_t columns = std::min(pair_columns, task.c.columns - column);
  std::fill_n(tile.sum_hi, pair_rows * pair_columns, 0.0);
  std::fill_n(tile.sum_lo, pair_rows * pair_columns, 0.0);
  for (std::int64_t p = 0; p < task.a.columns; p += pair_length) {
    const std::int64_t length = std::min(pair_length, task.a.columns - p);
    pack(task.a.block(row, p, rows, length), pair_rows, length, tile.a_hi, tile.a_lo);
    pack(task.b.transposed().block(column, p, columns, length), pair_columns, length, tile.b_hi, tile.b_lo);
    kernels.add_products(tile, rows, columns, length);
  }
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t index = i + j * pair_rows;
      finish_pair_element(task, row + i, column + j, {tile.sum_hi[index], tile.sum_lo[index]});
    }
  }
}

}  // namespace

void multiply_pairs(const NativeProduct<DoubleDouble>& task, const PairKernels& kernels) {
  const std::int64_t tile_rows = divide_up(task.c.rows, pair_rows);
  const std::int64_t tiles = tile_rows * divide_up(task.c.columns, pair_columns);
#pragma omp parallel for num_threads(workers_for(tiles, task.threads)) schedule(dynamic)
  for (std::int64_t index = 0; index < tiles; ++index) {
    const FloatingEnvironment environment;
    multiply_tile(task, kernels, index % tile_rows * pair_rows, index / tile_rows * pair_columns);
  }
}

}  // namespace kintsugi::core
