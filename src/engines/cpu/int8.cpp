#include "engines/cpu/int8.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "arith/residue.hpp"
#include "base/floating_environment.hpp"
#include "base/vectorised.hpp"
#include "base/workers.hpp"

namespace kintsugi::core {

namespace {

constexpr std::int64_t tile = int8_tile;
static_assert(Slices::vector_multiple % tile == 0);
constexpr std::int64_t tile_entries = tile * tile;

std::vector<const Int8Kernels*> find_families() {
  std::vector<const Int8Kernels*> families;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vnni")) {
    families.push_back(&int8_avx512);
  }
#endif
  families.push_back(&int8_generic);
  return families;
}

// One tile of a group's int32 accumulators over inner indices begin ... end - 1.
void add_terms(const Multiplication& task, const Int8Kernels& kernels, int group, std::int64_t row,
               std::int64_t column, std::int64_t begin, std::int64_t end, std::byte* packed,
               std::uint32_t* inside) {
  for (const Term& term : task.schedule->terms) {
    if (term.group != group) continue;
    const Int8Block block{task.a.vector<std::int8_t>(term.a, row) + begin,
                          task.b.vector<std::int8_t>(term.b, column) + begin,
                          task.a.vector_stride(),
                          std::min(tile, task.sums.rows - row),
                          std::min(tile, task.sums.columns - column),
                          end - begin};
    kernels.add_product(block, packed, inside);
  }
}

// residues = (sums, and residues unless this is the first block) modulo the modulus.
KINTSUGI_VECTORISED void reduce_sums(const std::uint32_t* sums, std::int64_t count, std::int32_t modulus,
                                     bool first, std::uint8_t* residues) {
  const double inverse = 1.0 / modulus;
  const std::int32_t kept = first ? 0 : 0xff;
  for (std::int64_t i = 0; i < count; ++i) {
    const double sum =
        static_cast<double>(static_cast<std::int32_t>(sums[i])) + static_cast<double>(kept & residues[i]);
    const auto rest = static_cast<std::int32_t>(sum - rounded_to_integer(sum * inverse) * modulus);
    residues[i] = static_cast<std::uint8_t>(rest + (rest < 0 ? modulus : 0));
  }
}

// What of the tile lies inside the sums leaves into them, as residues or as integers.
void leave_reduced(const Accumulators& sums, int group, std::int32_t modulus, std::int64_t row,
                   std::int64_t column, bool first, const std::uint32_t* inside) {
  const std::int64_t rows = std::min(tile, sums.rows - row);
  const std::int64_t columns = std::min(tile, sums.columns - column);
  for (std::int64_t j = 0; j < columns; ++j) {
    reduce_sums(inside + j * tile, rows, modulus, first,
                sums.group<std::uint8_t>(group) + row + (column + j) * sums.rows);
  }
}

void leave_engine(const Accumulators& sums, int group, std::int64_t row, std::int64_t column, bool first,
                  const std::uint32_t* inside) {
  const std::int64_t rows = std::min(tile, sums.rows - row);
  const std::int64_t columns = std::min(tile, sums.columns - column);
  for (std::int64_t j = 0; j < columns; ++j) {
    std::int64_t* outside = sums.group<std::int64_t>(group) + row + (column + j) * sums.rows;
    const std::uint32_t* source = inside + j * tile;
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto sum = static_cast<std::int32_t>(source[i]);
      outside[i] = first ? sum : outside[i] + sum;
    }
  }
}

// The schedule for one tile of C, as in schedule/schedule.hpp.
void multiply_tile(const Multiplication& task, const Int8Kernels& kernels, std::int64_t row,
                   std::int64_t column, std::byte* scratch) {
  auto* inside = reinterpret_cast<std::uint32_t*>(scratch);
  std::byte* packed = scratch + tile_entries * sizeof(std::uint32_t);
  const std::int64_t k = task.a.vector_stride();  // zeros up to there
  const std::int64_t block = task.schedule->block_length(k);
  for (int g = 0; g < task.schedule->groups; ++g) {
    for (std::int64_t begin = 0; begin < k; begin += block) {
      std::fill_n(inside, tile_entries, 0U);
      add_terms(task, kernels, g, row, column, begin, std::min(k, begin + block), packed, inside);
      if (task.sums.type == SumType::residue) {
        leave_reduced(task.sums, g, task.schedule->group_moduli[g], row, column, begin == 0, inside);
      } else {
        leave_engine(task.sums, g, row, column, begin == 0, inside);
      }
    }
  }
}

}  // namespace

std::span<const Int8Kernels* const> int8_families() {
  static const std::vector<const Int8Kernels*> families = find_families();
  return families;
}

const KernelChoice<Int8Kernels>& int8_choice() {
  static const auto choice = choose_kernels(int8_families(), SettingId::cpu_int8, "KINTSUGI_CPU_INT8");
  return choice;
}

std::size_t int8_worker_bytes(const Int8Kernels& kernels) {
  return aligned_size(tile_entries * sizeof(std::uint32_t) + kernels.packed_bytes);
}

void multiply_int8(const Multiplication& task, const Int8Kernels& kernels) {
  const std::int64_t tile_rows = divide_up(task.sums.rows, tile);
  const std::int64_t tiles = tile_rows * divide_up(task.sums.columns, tile);
  const std::size_t scratch_of_worker = int8_worker_bytes(kernels);
  const int workers = workers_for(tiles, task.threads);
#pragma omp parallel for num_threads(workers) schedule(static, 1)
  for (int worker = 0; worker < workers; ++worker) {
    const FloatingEnvironment environment;  // residues of sums are rounded in double
    std::byte* scratch = task.scratch + static_cast<std::size_t>(worker) * scratch_of_worker;
    for (std::int64_t index = worker; index < tiles; index += workers) {
      multiply_tile(task, kernels, index % tile_rows * tile, index / tile_rows * tile, scratch);
    }
  }
}

}  // namespace kintsugi::core
