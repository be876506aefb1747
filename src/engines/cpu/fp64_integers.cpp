#include "engines/cpu/products.hpp"

#include <algorithm>

#include "engines/cpu/openblas.hpp"
#include "engines/tile_loop.hpp"

namespace kintsugi::core {

namespace {

constexpr std::int64_t tile = Slices::vector_multiple;

void call_gemm(int k, const double* a, int lda, const double* b, int ldb, double* sums) {
  const int edge = static_cast<int>(tile);
  const double one = 1;
  const double zero = 0;
  openblas().dgemm("T", "N", &edge, &edge, &k, &one, a, &lda, b, &ldb, &zero, sums, &edge);
}

// Adds a tile's sums over a block of k to those of earlier blocks. Elements outside C are left out.
void add_outside(const Accumulators& sums, int group, std::int64_t row, std::int64_t column,
                 const double* source, bool is_first) {
  const std::int64_t rows = std::min(tile, sums.rows - row);
  const std::int64_t columns = std::min(tile, sums.columns - column);
  for (std::int64_t j = 0; j < columns; ++j) {
    std::int64_t* target = sums.group<std::int64_t>(group) + row + (column + j) * sums.rows;
    const double* integers = source + j * tile;
    for (std::int64_t i = 0; i < rows; ++i) {
      target[i] = (is_first ? 0 : target[i]) + static_cast<std::int64_t>(integers[i]);
    }
  }
}

void multiply_tile(const Multiplication& task, std::int64_t row, std::int64_t column, double* inside) {
  const std::int64_t k = task.a.vector_stride();  // padded with zeros
  const std::int64_t block = task.schedule->block_length(k);
  const int ld = static_cast<int>(k);
  std::array<bool, max_groups> used{};
  for (std::int64_t begin = 0; begin < k; begin += block) {
    const int length = static_cast<int>(std::min(block, k - begin));
    for (const Term& term : task.schedule->terms) {
      call_gemm(length, task.a.vector<double>(term.a, row) + begin, ld,
                task.b.vector<double>(term.b, column) + begin, ld, inside);
      add_outside(task.sums, term.group, row, column, inside, !used[term.group]);
      used[term.group] = true;
    }
  }
}

}  // namespace

std::size_t fp64_integers_worker_bytes() { return array_bytes(tile, tile, sizeof(double)); }

void multiply_fp64_integers(const Multiplication& task) {
  const OpenBlasThreads single(1, task.threads);
  for_each_tile({task.sums.rows, task.sums.columns, tile, tile}, single.callers(), task.scratch,
                fp64_integers_worker_bytes(), [&](std::int64_t row, std::int64_t column, std::byte* scratch) {
                  multiply_tile(task, row, column, reinterpret_cast<double*>(scratch));
                });
}

}  // namespace kintsugi::core
