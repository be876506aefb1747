#include "engines/cuda/gemm/native_times.hpp"

#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/arch/architecture.hpp"
#include "engines/cuda/gemm/dmma/dmma_kernels.hpp"
#include "engines/cuda/gemm/simt/simt_gemm.hpp"

namespace kintsugi::core::cuda {

std::optional<NativeTimes> native_times(const NativeShape& shape) {
  const Architecture& architecture = current_architecture();
  if (architecture.costs == nullptr) return std::nullopt;
  const auto type = static_cast<std::size_t>(shape.type);
  const NativeCosts& costs = architecture.costs->native[type];
  const DmmaKernels* dmma = architecture.available_dmma(shape.type);
  const double tiles =
      dmma != nullptr ? dmma_time(*dmma, shape) : simt_time(architecture.simt_tiles[type], shape);
  const double elements =
      static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.items);
  const double operations = (shape.type == ElementType::c32 || shape.type == ElementType::c64 ? 8 : 2) *
                            elements * static_cast<double>(shape.k);
  const double copy_c = elements * static_cast<double>(element_bytes(shape.type)) /  // to read or write C
                        architecture.costs->call.copy_rate;
  constexpr double launch = 3.5;  // of a kernel of ours, until its first operands have arrived
  constexpr double vendor_launch = 6;
  constexpr double check_launch = 5;
  constexpr double check_copies = 2.5;  // the test of sums reads C at less than half of the copy's rate
  constexpr double begin = 32;          // beginning and end of a tile, as inner indices
  const double own = launch + costs.inner_index * (static_cast<double>(shape.k) + begin) * tiles + copy_c;
  const double vendor = vendor_launch + operations / costs.vendor_rate;
  return NativeTimes{.own = own,
                     .own_added = own + 2 * copy_c,
                     .vendor_tested = vendor + check_launch + check_copies * copy_c,
                     .vendor_added = vendor + check_launch + (check_copies + 2) * copy_c};
}

}  // namespace kintsugi::core::cuda
