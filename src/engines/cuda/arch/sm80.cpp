// Ampere and Ada, compute capability 8.x: the oldest architectures for which the generic kernels are compiled
// to machine code (cmake/DeviceChoice.cmake). They have no clusters, and the library has no product kernels
// for them. Nothing was measured on them.
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
