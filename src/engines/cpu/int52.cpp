#include "engines/cpu/products.hpp"

#include <algorithm>

#include "engines/tile_loop.hpp"

namespace kintsugi::core {

namespace {

constexpr std::int64_t tile = int52_tile;

// True if word number `word` is zero in all elements of the `count` vectors from `first` on.
bool all_zero(const Slices& slices, int word, std::int64_t first, std::int64_t count) {
  for (std::int64_t v = first; v < first + count; ++v) {
    const std::int64_t* vector = slices.vector<std::int64_t>(word, v);
    if (std::any_of(vector, vector + slices.k, [](std::int64_t x) { return x != 0; })) return false;
  }
  return true;
}

// Computes one group's sums of one tile, over all of k.
void multiply_tile(const Multiplication& task, const Int52Kernels& kernels, int group, std::int64_t row,
                   std::int64_t column, std::byte* scratch) {
  const std::int64_t rows = std::min(tile, task.sums.rows - row);
  const std::int64_t columns = std::min(tile, task.sums.columns - column);
  Int52Sums sums{.data = task.sums.group<Int52Sum>(group) + row + column * task.sums.rows,
                 .stride = task.sums.rows,
                 .adds = false};
  for (const Term& term : task.schedule->terms) {
    if (term.group != group || all_zero(task.a, term.a, row, rows) ||
        all_zero(task.b, term.b, column, columns)) {
      continue;
    }
    const Int52Block block{task.a.vector<std::int64_t>(term.a, row),
                           task.b.vector<std::int64_t>(term.b, column),
                           task.a.vector_stride(),
                           rows,
                           columns,
                           task.a.k};
    kernels.add_product(block, scratch, sums);
    sums.adds = true;
  }
  if (sums.adds) return;
  for (std::int64_t j = 0; j < columns; ++j) std::fill_n(sums.data + j * sums.stride, rows, Int52Sum{0});
}

}  // namespace

std::size_t int52_worker_bytes(const Int52Kernels& kernels) { return aligned_size(kernels.packed_bytes); }

void multiply_int52(const Multiplication& task, const Int52Kernels& kernels) {
  for_each_tile({task.sums.rows, task.sums.columns, tile, tile}, task.threads, task.scratch,
                int52_worker_bytes(kernels), [&](std::int64_t row, std::int64_t column, std::byte* scratch) {
                  for (int g = 0; g < task.schedule->groups; ++g)
                    multiply_tile(task, kernels, g, row, column, scratch);
                });
}

}  // namespace kintsugi::core
