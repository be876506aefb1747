#include "engines/cuda/arch/le_gemm_model.hpp"

#include <algorithm>
#include <cmath>

#include "base/view.hpp"

namespace kintsugi::core::cuda::le_gemm {

namespace {

// Eqs. 16 and 17 limit a thread's work; section 4.3 says that registers and shared memory must not overflow,
// without formulas. The elements of C that a thread computes (Eq. 17) need a register each, and at least one
// register must be left for operands. The paper counts one accumulator, though its algorithm has two.
bool fits_registers(const Tile& tile, const Device& device) {
  const int registers = std::min(device.thread_registers, device.unit_registers / tile.threads);
  return computed_elements(tile) < registers;
}

// Section 4.3: what an iteration loads (Eq. 13) is in a double buffer.
bool fits_shared_memory(const Tile& tile, const Device& device) {
  return 2 * memory_bytes(tile) <= static_cast<double>(device.shared_bytes);
}

}  // namespace

// phi turns workgroups into wavefronts. Tiles at the edges of C are whole workgroups. The text after Eq. 17
// says that a device supports a limited number of threads.
double thread_parallelism(std::int64_t m, std::int64_t n, const Tile& tile, const Device& device) {
  const std::int64_t workgroups = divide_up(m, tile.rows) * divide_up(n, tile.columns);
  const std::int64_t wavefronts = workgroups * divide_up(tile.threads, device.wavefront);  // phi
  const double supported = static_cast<double>(device.units) * device.unit_threads;
  return std::min(static_cast<double>(wavefronts * device.wavefront), supported);
}

double memory_bytes(const Tile& tile, int slices) {
  constexpr double element = 2;  // bytes of a half-precision number
  return slices * element * static_cast<double>(tile.rows * tile.depth + tile.depth * tile.columns);
}

double operations(const Tile& tile, int terms) {
  return terms * 2.0 * static_cast<double>(tile.rows * tile.columns * tile.depth);
}

double intensity(const Tile& tile) { return operations(tile) / memory_bytes(tile); }

double loaded_elements(const Tile& tile) {
  return static_cast<double>(tile.rows * tile.columns + tile.rows * tile.depth + tile.depth * tile.columns) /
         tile.threads;
}

double computed_elements(const Tile& tile) {
  return static_cast<double>(tile.rows * tile.columns) / tile.threads;
}

double value(std::int64_t m, std::int64_t n, const Tile& tile, const Device& device, double weight) {
  return std::pow(thread_parallelism(m, n, tile, device), weight) * std::pow(intensity(tile), 1 - weight);
}

// T_K is in neither objective. Section 4.3 sets it so that shared memory does not overflow, to a multiple of
// the fragment's depth: here to the largest one that fits, as more inner indices mean fewer iterations, of
// which each synchronizes the workgroup. Of tiles with equal values the one that loads less per thread
// (Eq. 16) is taken, then the one with more columns.
//
// As printed, the equations do not give table 2: with T_K = 16, which section 4.3 allows, 256 x 256 fits into
// registers and shared memory of the MI210. `fragments` = 2 is the smallest change that gives it: an
// iteration has two fragments along k, so that one can be read while the other is multiplied (section 4.3).
std::optional<Tile> best_tile(std::int64_t m, std::int64_t n, const Device& device, int fragments) {
  constexpr std::int64_t shortest = 16;
  constexpr std::int64_t longest = 256;
  constexpr int threads = 256;  // the paper has no number; both devices divide this one into wavefronts
  std::optional<Tile> best;
  const auto is_better = [&](const Tile& tile) {
    if (!best) return true;
    const double gain = value(m, n, tile, device) / value(m, n, *best, device);
    if (gain != 1) return gain > 1;
    return loaded_elements(tile) <= loaded_elements(*best);
  };
  for (std::int64_t rows = shortest; rows <= longest; rows *= 2) {
    for (std::int64_t columns = rows; columns <= longest; columns *= 2) {
      Tile tile{rows, columns, std::int64_t{fragments} * device.fragment_depth, threads};
      if (!fits_registers(tile, device) || !fits_shared_memory(tile, device)) continue;
      for (Tile deeper = tile; fits_shared_memory(deeper, device); deeper.depth *= 2) tile = deeper;
      if (is_better(tile)) best = tile;
    }
  }
  return best;
}

}  // namespace kintsugi::core::cuda::le_gemm
