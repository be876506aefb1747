#include <array>

#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/products/plain_tiles.hpp"
#include "engines/cuda/recombine/recombine.hpp"

namespace kintsugi::core::cuda {

void multiply_plainly(const Queue& queue, const DeviceTile& tile) {
  static const std::array<KernelName, 4> kernels{KernelName{"plain_products", "plain_f32", awaits_others},
                                                 KernelName{"plain_products", "plain_f64", awaits_others},
                                                 KernelName{"plain_products", "plain_c32", awaits_others},
                                                 KernelName{"plain_products", "plain_c64", awaits_others}};
  const std::int64_t side = tile.c.complex() ? plain_tile<std::complex<float>> : plain_tile<float>;
  const std::int64_t blocks = divide_up(tile.rows, side) * divide_up(tile.columns, side);
  for_each_launch(tile.entries, [&](std::int64_t first, std::int64_t entries) {
    DeviceTile part = tile;
    part.entry += first;
    part.a.entry += first;
    part.b.entry += first;
    if (part.condition.choice != nullptr) part.condition.choice += first;
    launch(kernels[static_cast<std::size_t>(tile.c.type)], {blocks, entries}, plain_threads, 0, queue, part);
  });
}

}  // namespace kintsugi::core::cuda
