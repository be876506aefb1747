// Layout of the sums of tiles that fail Eq. 9, which one kernel writes and the GEMM kernel's epilogue reads:
// in the order of the accumulators of mma.sync and of wgmma, so that a warp accesses 32 neighbors.
#pragma once

#include "base/memory.hpp"
#include "engines/cuda/gemm/weighted_tiles/weighted_tile_params.hpp"

namespace kintsugi::core::cuda {

class FailingSums {
 public:
  __device__ FailingSums(const WeightedTileParams& params, std::int64_t item)
      : sums_(params.failing_sums), row_panels_(divide_up(params.tile.rows, weighted_tile_rows)),
        column_panels_(divide_up(params.tile.columns, weighted_tile_columns)),
        first_panel_(item * row_panels_) {}

  // First sum of a lane for the 16 rows and the 8 columns of two panels. The lane's i-th sum of the fragments
  // that begin there follows at the distance offset(i).
  __device__ float* first(std::int64_t row_panel, std::int64_t column_panel, int lane) const {
    return sums_ + ((first_panel_ + row_panel) * column_panels_ + column_panel) * failing_sums_of_panels +
           lane;
  }
  __device__ static int offset(int i) { return i * 32; }

 private:
  float* sums_;
  std::int64_t row_panels_;
  std::int64_t column_panels_;
  std::int64_t first_panel_;  // number of the batch item's first row panel
};

}  // namespace kintsugi::core::cuda
