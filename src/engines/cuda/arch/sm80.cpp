// Ampere and Ada, compute capability 8.x, the oldest architectures for which there is machine code of the
// generic kernels (cmake/DeviceChoice.cmake). They have no clusters, the library has no product kernels for
// them, and nothing was measured on them.
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
