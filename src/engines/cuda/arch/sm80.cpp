// Ampere and Ada, compute capability 8.x: machine code of the generic kernels begins here
// (cmake/DeviceChoice.cmake). The architecture has no clusters, there are no product kernels of ours for it,
// and nothing was measured on it.
#include "engines/cuda/arch/architecture.hpp"

namespace kintsugi::core::cuda {

const Architecture& sm80_architecture();

const Architecture& sm80_architecture() {
  static constexpr std::array accumulators{Accumulator::cublas};
  static constexpr Architecture table{
      .name = "sm80",
      .major = 8,
      .fp16_bf16_accumulators = accumulators,
      .int52_rate = 1.0 / 32,
      .simt_tiles = {simt_tiles_f32, simt_tiles_f64, simt_tiles_c32, simt_tiles_c64}};
  return table;
}

}  // namespace kintsugi::core::cuda
