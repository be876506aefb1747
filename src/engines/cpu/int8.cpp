#include "engines/cpu/products.hpp"

#include <algorithm>
#include <array>

#include "arith/residue/residue.hpp"
#include "base/vectorised.hpp"
#include "engines/tile_loop.hpp"

namespace kintsugi::core {

namespace {

// Tile of `rows` x `columns` elements of C from (row, column) on. `sums` are its sums; columns of sums are
// `stride` apart.
struct Tile {
  std::int64_t row;
  std::int64_t column;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t stride;
  std::uint32_t* sums;
};

// Adds a group's products over inner indices begin ... end - 1 to its int32 accumulators.
void add_terms(const Multiplication& task, const Int8Kernels& kernels, int group, const Tile& tile,
               std::int64_t begin, std::int64_t end, std::byte* packed) {
  for (const Term& term : task.schedule->terms) {
    if (term.group != group) continue;
    const Int8Block block{.a = task.a.vector<std::int8_t>(term.a, tile.row) + begin,
                          .b = task.b.vector<std::int8_t>(term.b, tile.column) + begin,
                          .stride = task.a.vector_stride(),
                          .rows = tile.rows,
                          .columns = tile.columns,
                          .length = end - begin};
    kernels.add_product(block, packed, tile.sums);
  }
}

// Reduces the int32 sums of a block of k modulo `modulus`. Residues of earlier blocks, if any, are added
// first.
KINTSUGI_VECTORIZED void reduce_sums(const std::uint32_t* sums, std::int64_t count, std::int32_t modulus,
                                     bool is_first_block, std::uint8_t* residues) {
  const double inverse = 1.0 / modulus;
  const std::int32_t mask_of_earlier = is_first_block ? 0 : 0xff;
  for (std::int64_t i = 0; i < count; ++i) {
    const double sum = static_cast<double>(static_cast<std::int32_t>(sums[i])) +
                       static_cast<double>(mask_of_earlier & residues[i]);
    const auto rest = static_cast<std::int32_t>(sum - nearest_small_integer(sum * inverse) * modulus);
    residues[i] = static_cast<std::uint8_t>(rest + (rest < 0 ? modulus : 0));
  }
}

// Adds the tile's sums over a block of k to the residues that are stored outside.
void add_residues_outside(const Accumulators& sums, int group, std::int32_t modulus, const Tile& tile,
                          bool is_first_block) {
  for (std::int64_t j = 0; j < tile.columns; ++j) {
    reduce_sums(tile.sums + j * tile.stride, tile.rows, modulus, is_first_block,
                sums.group<std::uint8_t>(group) + tile.row + (tile.column + j) * sums.rows);
  }
}

void add_outside(const Accumulators& sums, int group, const Tile& tile, bool is_first_block) {
  for (std::int64_t j = 0; j < tile.columns; ++j) {
    std::int64_t* outside = sums.group<std::int64_t>(group) + tile.row + (tile.column + j) * sums.rows;
    const std::uint32_t* source = tile.sums + j * tile.stride;
    for (std::int64_t i = 0; i < tile.rows; ++i) {
      const auto sum = static_cast<std::int32_t>(source[i]);
      outside[i] = is_first_block ? sum : outside[i] + sum;
    }
  }
}

// Runs the schedule for one tile of C, as in schedule/schedule.hpp.
void multiply_tile(const Multiplication& task, const Int8Kernels& kernels, const Tile& tile,
                   std::byte* packed) {
  const std::int64_t k = task.a.vector_stride();  // padded with zeros
  const std::int64_t block = task.schedule->block_length(k);
  for (int g = 0; g < task.schedule->groups; ++g) {
    for (std::int64_t begin = 0; begin < k; begin += block) {
      for (std::int64_t j = 0; j < tile.columns; ++j) std::fill_n(tile.sums + j * tile.stride, tile.rows, 0U);
      add_terms(task, kernels, g, tile, begin, std::min(k, begin + block), packed);
      const bool is_first_block = begin == 0;
      if (task.sums.type == SumType::residue) {
        add_residues_outside(task.sums, g, task.schedule->group_moduli[g], tile, is_first_block);
      } else {
        add_outside(task.sums, g, tile, is_first_block);
      }
    }
  }
}

// Returns the edge of tiles. Large tiles read operands less often, but every thread must get some tiles.
std::int64_t tile_edge(const Int8Kernels& kernels, const Accumulators& sums, int threads) {
  std::int64_t edge = kernels.tile;
  while (edge > Slices::vector_multiple && threads > 1 &&
         divide_up(sums.rows, edge) * divide_up(sums.columns, edge) < 4 * threads) {
    edge /= 2;
  }
  return edge;
}

std::size_t sums_bytes(const Int8Kernels& kernels) {
  return static_cast<std::size_t>(kernels.tile * kernels.tile) * sizeof(std::uint32_t);
}

}  // namespace

std::size_t int8_worker_bytes(const Int8Kernels& kernels) {
  return aligned_size(sums_bytes(kernels) + kernels.packed_bytes);
}

void multiply_int8(const Multiplication& task, const Int8Kernels& kernels) {
  const std::int64_t edge = tile_edge(kernels, task.sums, task.threads);
  const TileGrid grid{task.sums.rows, task.sums.columns, edge, edge};
  for_each_tile(grid, task.threads, task.scratch, int8_worker_bytes(kernels),
                [&](std::int64_t row, std::int64_t column, std::byte* scratch) {
                  const Tile tile{.row = row,
                                  .column = column,
                                  .rows = std::min(edge, task.sums.rows - row),
                                  .columns = std::min(edge, task.sums.columns - column),
                                  .stride = kernels.tile,
                                  .sums = reinterpret_cast<std::uint32_t*>(scratch)};
                  multiply_tile(task, kernels, tile, scratch + sums_bytes(kernels));
                });
}

}  // namespace kintsugi::core
