#include "engines/cuda/gemm/simt/simt_gemm.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/arch/architecture.hpp"
#include "engines/cuda/common/items.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/gemm/tile_time.hpp"
#include "engines/cuda/recombine/recombine.hpp"

namespace kintsugi::core::cuda {

namespace {

using SimtKernels = std::array<KernelName, 3>;  // in the order of the architecture's tiles

#define KINTSUGI_SIMT(name) \
  KernelName { "simt_gemm", name, waits_for_grid_dependency }
const std::array<SimtKernels, 4> of_types{
    {{{KINTSUGI_SIMT("simt_f32_128"), KINTSUGI_SIMT("simt_f32_64"), KINTSUGI_SIMT("simt_f32_32")}},
     {{KINTSUGI_SIMT("simt_f64_128"), KINTSUGI_SIMT("simt_f64_64"), KINTSUGI_SIMT("simt_f64_32")}},
     {{KINTSUGI_SIMT("simt_c32_64"), KINTSUGI_SIMT("simt_c32_32"), KINTSUGI_SIMT("")}},
     {{KINTSUGI_SIMT("simt_c64_64"), KINTSUGI_SIMT("simt_c64_32"), KINTSUGI_SIMT("")}}}};
#undef KINTSUGI_SIMT

std::int64_t blocks_of(std::int64_t rows, std::int64_t columns, const SimtTile& shape) {
  return divide_up(rows, shape.side) * divide_up(columns, shape.side);
}

double time_by(const SimtTile& shape, std::int64_t rows, std::int64_t columns, std::int64_t items) {
  const std::int64_t sm_count = device_attribute(sm_count_attribute, current_device());
  return tile_time(blocks_of(rows, columns, shape) * items, sm_count, shape.at_once, double{shape.time});
}

const SimtTile& fastest(std::span<const SimtTile> tiles, std::int64_t rows, std::int64_t columns,
                        std::int64_t items) {
  return *std::ranges::min_element(
      tiles, {}, [&](const SimtTile& shape) { return time_by(shape, rows, columns, items); });
}

}  // namespace

double simt_time(std::span<const SimtTile> tiles, const NativeShape& shape) {
  return time_by(fastest(tiles, shape.m, shape.n, shape.items), shape.m, shape.n, shape.items);
}

void multiply_unsplit(const Queue& queue, const DeviceTile& tile) {
  const auto type = static_cast<std::size_t>(tile.c.type);
  if (const DmmaKernels* dmma = current_architecture().available_dmma(tile.c.type); dmma != nullptr)
    return multiply_by_dmma(queue, *dmma, tile);
  const std::span<const SimtTile> tiles = current_architecture().simt_tiles[type];
  const SimtTile& chosen = fastest(tiles, tile.rows, tile.columns, tile.items);
  const KernelName& kernel = of_types[type][static_cast<std::size_t>(&chosen - tiles.data())];
  for_each_launch(tile.items, [&](std::int64_t first, std::int64_t items) {
    launch(kernel, {blocks_of(tile.rows, tile.columns, chosen), items}, simt_threads, 0, queue,
           from_item(tile, first));
  });
}

}  // namespace kintsugi::core::cuda
