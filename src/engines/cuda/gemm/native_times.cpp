#include "engines/cuda/gemm/native_times.hpp"

#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/arch/architecture.hpp"
#include "engines/cuda/gemm/dmma/dmma_kernels.hpp"
#include "engines/cuda/gemm/simt/simt_gemm.hpp"

namespace kintsugi::core::cuda {

NativeTimes native_times(const NativeShape& shape, const Costs& costs) {
  const Architecture& architecture = current_architecture();
  const auto type = static_cast<std::size_t>(shape.type);
  const NativeCallCosts& call = costs.native_call;
  const NativeCosts& type_costs = costs.native[type];
  const DmmaKernels* dmma = architecture.available_dmma(shape.type);
  const double index = dmma != nullptr
                           ? dmma_time(*dmma, shape, type_costs.tile_index)
                           : simt_time(architecture.simt_tiles[type], shape, type_costs.tile_index);
  const double elements =
      static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.items);
  const double operations = (shape.type == ElementType::c32 || shape.type == ElementType::c64 ? 8 : 2) *
                            elements * static_cast<double>(shape.k);
  // Time to read or write C.
  const double copy_c = elements * static_cast<double>(element_bytes(shape.type)) / costs.call.copy_rate;
  const double own = call.own_launch + index * (static_cast<double>(shape.k) + call.tile_ends) + copy_c;
  const double vendor = call.vendor_launch + operations / type_costs.vendor_rate;
  const double test = call.test_launch + call.test_read_time * copy_c;
  return {.own = own,
          .own_added = own + 2 * copy_c,
          .vendor_tested = vendor + test,
          .vendor_added = vendor + test + 2 * copy_c,
          .test = test};
}

}  // namespace kintsugi::core::cuda
