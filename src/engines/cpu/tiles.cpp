#include "engines/cpu/products.hpp"

#include <algorithm>
#include <array>

#include "arith/tile_arithmetic.hpp"
#include "base/vectorised.hpp"
#include "engines/tile_element.hpp"
#include "engines/tile_loop.hpp"

namespace kintsugi::core {

namespace {

constexpr int weights = 4;  // number of weights: the schedule's groups i + j = 0 ... 3

// Largest number of columns of a block of C. The tiles of some kernels have more. A thread has five sums for
// each element: four by weight, and one of all tiles. With this limit a thread's sums stay in its L2 cache,
// and small workspaces have room for them.
constexpr std::int64_t most_columns = 64;

std::int64_t block_columns(const Int8Kernels& kernels) { return std::min(kernels.tile, most_columns); }

// Rows and columns of C that a thread computes at once.
struct Block {
  std::int64_t row;
  std::int64_t column;
  std::int64_t rows;
  std::int64_t columns;
};

// Sums of a block, column-major.
struct Sums {
  std::array<std::uint32_t*, weights> of_weight;  // sums over one tile's inner indices
  float* outside;                                 // sums of all tiles
  std::int64_t stride;
};

std::size_t integer_bytes(const Int8Kernels& kernels) {
  return static_cast<std::size_t>(kernels.tile * block_columns(kernels)) * sizeof(std::uint32_t);
}

Sums take_sums(const Int8Kernels& kernels, std::byte* scratch) {
  Sums sums{.of_weight = {}, .outside = nullptr, .stride = kernels.tile};
  for (std::uint32_t*& integers : sums.of_weight) {
    integers = reinterpret_cast<std::uint32_t*>(scratch);
    scratch += integer_bytes(kernels);
  }
  sums.outside = reinterpret_cast<float*>(scratch);
  return sums;
}

void clear_weight_sums(const Sums& sums, const Block& block) {
  for (std::uint32_t* integers : sums.of_weight) {
    for (std::int64_t j = 0; j < block.columns; ++j) std::fill_n(integers + j * sums.stride, block.rows, 0U);
  }
}

void add_terms(const Multiplication& task, const Int8Kernels& kernels, const Block& block, std::int64_t begin,
               std::int64_t length, std::byte* packed, const Sums& sums) {
  for (const Term& term : task.schedule->terms) {
    const Int8Block product{.a = task.a.vector<std::int8_t>(term.a, block.row) + begin,
                            .b = task.b.vector<std::int8_t>(term.b, block.column) + begin,
                            .stride = task.a.vector_stride(),
                            .rows = block.rows,
                            .columns = block.columns,
                            .length = length};
    kernels.add_product(product, packed, sums.of_weight[term.group]);
  }
}

// Adds a tile's values to the sums outside, for `count` elements of one column.
KINTSUGI_VECTORIZED_FMA void add_values(const std::uint32_t* s0, const std::uint32_t* s1,
                                        const std::uint32_t* s2, const std::uint32_t* s3, float weight,
                                        std::int64_t count, float* outside) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = tile_value(static_cast<std::int32_t>(s0[i]), static_cast<std::int32_t>(s1[i]),
                                   static_cast<std::int32_t>(s2[i]), static_cast<std::int32_t>(s3[i]));
    outside[i] = std::fma(value, weight, outside[i]);
  }
}

void add_outside(const Multiplication& task, const Block& block, std::int64_t index, const Sums& sums) {
  const std::int64_t panel = task.a.tile_vectors;
  for (std::int64_t j = 0; j < block.columns; ++j) {
    const float weight_b = tile_weight(task.b.tile(block.column + j, index).difference);
    for (std::int64_t i = 0; i < block.rows; i += panel) {
      const float weight = tile_weight(task.a.tile(block.row + i, index).difference) * weight_b;
      const std::int64_t first = i + j * sums.stride;
      add_values(sums.of_weight[0] + first, sums.of_weight[1] + first, sums.of_weight[2] + first,
                 sums.of_weight[3] + first, weight, std::min(panel, block.rows - i), sums.outside + first);
    }
  }
}

void multiply_block(const Multiplication& task, const Int8Kernels& kernels, const Block& block,
                    std::byte* scratch) {
  const Sums sums = take_sums(kernels, scratch);
  std::byte* packed = scratch + (weights + 1) * integer_bytes(kernels);
  for (std::int64_t j = 0; j < block.columns; ++j)
    std::fill_n(sums.outside + j * sums.stride, block.rows, 0.0F);
  const std::int64_t depth = task.schedule->tiles.depth;
  for (std::int64_t begin = 0; begin < task.a.k; begin += depth) {
    clear_weight_sums(sums, block);
    add_terms(task, kernels, block, begin, std::min(depth, task.a.vector_stride() - begin), packed, sums);
    add_outside(task, block, begin / depth, sums);
  }
  for (std::int64_t j = 0; j < block.columns; ++j) {
    std::copy_n(sums.outside + j * sums.stride, block.rows,
                task.sums.group<float>(0) + block.row + (block.column + j) * task.sums.rows);
  }
}

}  // namespace

std::size_t tiles_worker_bytes(const Int8Kernels& kernels) {
  return aligned_size((weights + 1) * integer_bytes(kernels) + kernels.packed_bytes);
}

void multiply_tiles(const Multiplication& task, const Int8Kernels& kernels) {
  if (task.schedule->tiles.pair_exponent) return multiply_tiles_by_elements(task);
  const TileGrid grid{task.sums.rows, task.sums.columns, kernels.tile, block_columns(kernels)};
  for_each_tile(grid, task.threads, task.scratch, tiles_worker_bytes(kernels),
                [&](std::int64_t row, std::int64_t column, std::byte* scratch) {
                  const Block block{row, column, std::min(grid.tile_rows, task.sums.rows - row),
                                    std::min(grid.tile_columns, task.sums.columns - column)};
                  multiply_block(task, kernels, block, scratch);
                });
}

}  // namespace kintsugi::core
