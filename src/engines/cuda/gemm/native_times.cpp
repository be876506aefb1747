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

// Time of a copy of C.
double copy_time(const NativeShape& shape, const Costs& costs) {
  return elements_of(shape) * static_cast<double>(element_bytes(shape.type)) / costs.call.copy_rate;
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

NativeTimes native_times(const NativeShape& shape, const Costs& costs) {
  const Architecture& architecture = current_architecture();
  const NativeCallCosts& call = costs.native_call;
  const DmmaKernels* dmma = architecture.available_dmma(shape.type);
  const double product_time = dmma != nullptr ? dmma_time(*dmma, shape, costs) : simt_time(shape, costs);
  const double copy_c = copy_time(shape, costs);
  const double own = call.own_launch + product_time + copy_c;
  const double vendor = vendor_time(shape, costs);
  const double operand_bytes = static_cast<double>(shape.m + shape.n) * static_cast<double>(shape.k) *
                               static_cast<double>(shape.items) *
                               static_cast<double>(element_bytes(shape.type));
  const double test_by_sums = call.test_launch + call.test_read_time * copy_c;
  return {.own = own,
          .own_added = own + 2 * copy_c,
          .vendor = vendor,
          .vendor_added = vendor + test_by_sums + 2 * copy_c,
          .test_by_sums = test_by_sums,
          .test_by_operands = call.test_operands_launch + operand_bytes / costs.call.copy_rate};
}

}  // namespace kintsugi::core::cuda
