// Table of all devices that have no table of their own. None of them was measured.
#include "engines/cuda/arch/architecture.hpp"

namespace kintsugi::core::cuda {

const Architecture& generic_architecture();

const Architecture& generic_architecture() {
  static constexpr std::array accumulators{Accumulator::cublas};
  static constexpr Architecture table{
      .name = "generic",
      .fp16_bf16_accumulators = accumulators,
      // A product of 52-bit words is two 64-bit multiplications on 32-bit units: some 32 instructions.
      .int52_rate = 1.0 / 32,
      .simt_tiles = {simt_tiles_f32, simt_tiles_f64, simt_tiles_c32, simt_tiles_c64}};
  return table;
}

}  // namespace kintsugi::core::cuda
