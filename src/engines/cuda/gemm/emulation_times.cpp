#include "engines/cuda/gemm/emulation_times.hpp"

#include "engines/cuda/gemm/int8/int8_gemm.hpp"
#include "engines/cuda/gemm/multi_term/multi_term_gemm.hpp"
#include "engines/cuda/gemm/weighted_tiles/weighted_tile_gemm.hpp"

namespace kintsugi::core::cuda {

DeviceTimes expected_emulation_times(const DeviceShape& shape, const Costs& costs) {
  if (shape.schedule.tiles.depth > 0) return expected_weighted_tile_times(shape, costs);
  if (shape.format == FormatId::int8) return expected_residue_times(shape, costs);
  return expected_multi_term_times(shape, costs);
}

}  // namespace kintsugi::core::cuda
