// Expected times of products on a device, in microseconds: of tiles, of native products by cuBLAS and by the
// library's kernels, and of emulated products.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/view.hpp"
#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// Returns the time of `count` tiles. `time` is the time of as many tiles as the device holds at once. If an
// SM can hold several thread blocks, a thread block that is alone on its SM takes two thirds of `time`. With
// more than half as many thread blocks as SMs, the device gives some SMs two of them (measured with 100 and
// 120 thread blocks on 132 SMs).
inline double tile_time(std::int64_t count, std::int64_t sm_count, int blocks_per_sm, double time) {
  constexpr double lone_block_time = 0.66;
  const auto tiles_of_an_sm = static_cast<double>(divide_up(count, sm_count));
  if (blocks_per_sm == 1) return time * tiles_of_an_sm;
  return time * (2 * count <= sm_count ? lone_block_time : std::max(tiles_of_an_sm / blocks_per_sm, 1.0));
}

struct TileChoice {
  std::size_t index = 0;  // index of the tile
  double time = 0;        // expected time per inner index
};

// Returns the fastest tile for `items` products with `rows` rows and `columns` columns. `times` has for each
// tile the time per inner index of as many tiles as a device holds at once (NativeCosts::tile_index).
template <class Tile>
TileChoice fastest_tile(std::span<const Tile> tiles, std::span<const double> times, std::int64_t rows,
                        std::int64_t columns, std::int64_t items, std::int64_t sm_count) {
  TileChoice best;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const std::int64_t count = divide_up(rows, tiles[i].rows()) * divide_up(columns, tiles[i].columns());
    const double time = tile_time(count * items, sm_count, tiles[i].blocks_per_sm, times[i]);
    if (i == 0 || time < best.time) best = {i, time};
  }
  return best;
}

// x y in FP64, because an integer of 64 bits may be too small for the product.
constexpr double product_of(std::int64_t x, std::int64_t y) {
  return static_cast<double>(x) * static_cast<double>(y);
}

double vendor_time(const NativeShape& shape, const Costs& costs);

// Time of multiply_unsliced().
double own_native_time(const NativeShape& shape, const Costs& costs);

// Returns the expected times of a call whose schedule one of the library's kernels computes: multi-term,
// residues or exponents per tile.
DeviceTimes expected_emulation_times(const DeviceShape& shape, const Costs& costs);

}  // namespace kintsugi::core::cuda
