// Parameters of the kernels of bf16x6-direct, for launches of one product and of many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engines/cuda/gemm/direct_params.hpp"

namespace kintsugi::core::cuda {

// Tile and division of k of a product. All variants give the same bits.
struct DirectVariant {
  std::int32_t tile = 0;    // of direct_tiles
  bool swapped = false;     // rows of tiles are columns of C
  bool is_cluster = false;  // the thread blocks of a tile form a cluster
  std::int32_t splits = 1;  // thread blocks of a tile
  std::int32_t leaves = 0;  // of each of them
  double microseconds = 0;

  const DirectTileShape& shape() const { return direct_tiles[static_cast<std::size_t>(tile)]; }
};

// Parameters without scratch memory and report. Tensor maps are missing for operands that TMA cannot load.
struct DirectLaunch {
  DirectParams params;
  std::optional<TensorMap> row_map;
  std::optional<TensorMap> column_map;
  std::size_t layout = 0;  // of DirectKernels::Layouts
};

// `shape` is that of the tile and of the launch's items.
DirectLaunch direct_launch(const DeviceTile& tile, const DirectVariant& variant, const DeviceShape& shape);

}  // namespace kintsugi::core::cuda
