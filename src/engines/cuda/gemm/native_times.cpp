#include "engines/cuda/gemm/native_times.hpp"

#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/arch/architecture.hpp"
#include "engines/cuda/gemm/dmma/dmma_kernels.hpp"
#include "engines/cuda/gemm/simt/simt_gemm.hpp"

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
  const DmmaKernels* dmma = current_architecture().available_dmma(shape.type);
  const double product_time = dmma != nullptr ? dmma_time(*dmma, shape, costs) : simt_time(shape, costs);
  const double c_bytes = elements_of(shape) * static_cast<double>(element_bytes(shape.type));
  return costs.native_call.own_launch + product_time + c_bytes / costs.call.copy_rate;
}

}  // namespace kintsugi::core::cuda
