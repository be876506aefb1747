#include "engines/cpu/int52.hpp"

#include <algorithm>
#include <vector>

#include "base/threads.hpp"

namespace kintsugi::core {

namespace {

constexpr std::int64_t tile = int52_tile;

std::vector<const Int52Kernels*> find_families() {
  std::vector<const Int52Kernels*> families;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512ifma")) {
    families.push_back(&int52_avx512);
  }
#endif
  families.push_back(&int52_generic);
  return families;
}

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

std::span<const Int52Kernels* const> int52_families() {
  static constinit MadeOnce families(find_families);
  return families.get();
}

const KernelChoice<Int52Kernels>& int52_choice() {
  static constinit MadeOnce<KernelChoice<Int52Kernels>> choice(
      [] { return choose_kernels(int52_families(), SettingId::cpu_int52, "KINTSUGI_CPU_INT52"); });
  return choice.get();
}

std::size_t int52_worker_bytes(const Int52Kernels& kernels) { return aligned_size(kernels.packed_bytes); }

void multiply_int52(const Multiplication& task, const Int52Kernels& kernels) {
  const std::int64_t tile_rows = divide_up(task.sums.rows, tile);
  const std::int64_t tiles = tile_rows * divide_up(task.sums.columns, tile);
  const int workers = workers_for(tiles, task.threads);
#pragma omp parallel for num_threads(workers) schedule(static, 1)
  for (int worker = 0; worker < workers; ++worker) {
    std::byte* scratch = task.scratch + static_cast<std::size_t>(worker) * int52_worker_bytes(kernels);
    for (std::int64_t index = worker; index < tiles; index += workers) {
      for (int g = 0; g < task.schedule->groups; ++g) {
        multiply_tile(task, kernels, g, index % tile_rows * tile, index / tile_rows * tile, scratch);
      }
    }
  }
}

}  // namespace kintsugi::core
