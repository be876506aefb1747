#include "engines/cuda/gemm/times.hpp"

#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/gemm/direct_gemm.hpp"
#include "engines/cuda/gemm/dmma_gemm.hpp"
#include "engines/cuda/gemm/int8_gemm.hpp"
#include "engines/cuda/gemm/multi_term_gemm.hpp"
#include "engines/cuda/gemm/simt_tiles.hpp"
#include "engines/cuda/gemm/weighted_tile_gemm.hpp"

namespace kintsugi::core::cuda {

namespace {

double elements_of(const NativeShape& shape) {
  return static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.items);
}

}  // namespace

double vendor_time(const NativeShape& shape, const Costs& costs) {
  const NativeCosts& type_costs = costs.native[static_cast<std::size_t>(shape.type)];
  const double operations = (shape.type == ElementType::c32 || shape.type == ElementType::c64 ? 8 : 2) *
                            elements_of(shape) * static_cast<double>(shape.k);
  const double rate = type_costs.vendor_rate * (shape.is_aligned ? 1 : type_costs.unaligned_rate);
  const double of_result = type_costs.vendor_result + (shape.adds_to_c ? type_costs.vendor_update : 0);
  return costs.native_call.vendor_launch + operations / rate + of_result * elements_of(shape);
}

double own_native_time(const NativeShape& shape, const Costs& costs) {
  const DmmaKernels* dmma = current_family().available_dmma(shape.type);
  const double product_time = dmma != nullptr ? dmma_time(*dmma, shape, costs) : simt_time(shape, costs);
  const double c_bytes = elements_of(shape) * static_cast<double>(element_bytes(shape.type));
  return costs.native_call.own_launch + product_time + c_bytes / costs.call.copy_rate;
}

DeviceTimes expected_emulation_times(const DeviceShape& shape, const Costs& costs) {
  if (shape.schedule.tiles.depth > 0) return expected_weighted_tile_times(shape, costs);
  if (shape.schedule.is_direct) return expected_direct_times(shape, costs);
  if (shape.format == FormatId::int8) return expected_residue_times(shape, costs);
  return expected_multi_term_times(shape, costs);
}

}  // namespace kintsugi::core::cuda
