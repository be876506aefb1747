// Layout of the sums of tiles that fail Eq. 9. One kernel writes these sums, and the GEMM kernel's epilogue
// reads them. Their order is that of the accumulators of mma.sync and of wgmma, so each access of a warp
// reads or writes 32 neighbors.
#pragma once

#include "base/memory.hpp"
#include "engines/cuda/gemm/weighted_tile_params.hpp"

namespace kintsugi::core::cuda {

class FailingSums {
 public:
  __device__ FailingSums(const WeightedTileParams& params, std::int64_t item)
      : sums_(params.failing_sums), row_panels_(divide_up(params.tile.rows, weighted_tile_rows)),
        column_panels_(divide_up(params.tile.columns, weighted_tile_columns)),
        first_panel_(item * row_panels_) {}

  // Address of a lane's first sum of the 16 rows and 8 columns of two panels. The lane's i-th sum, counted
  // from these panels on, has the distance offset(i) from it.
  __device__ float* first(std::int64_t row_panel, std::int64_t column_panel, int lane) const {
    return sums_ + ((first_panel_ + row_panel) * column_panels_ + column_panel) * failing_sums_of_panels +
           lane;
  }
  __device__ static int offset(int i) { return i * 32; }

 private:
  float* sums_;
  std::int64_t row_panels_;
  std::int64_t column_panels_;
  std::int64_t first_panel_;  // number of the batch item's first panel of rows
};

}  // namespace kintsugi::core::cuda
