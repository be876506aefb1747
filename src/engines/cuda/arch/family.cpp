#include "engines/cuda/arch/family.hpp"

#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/common/launch.hpp"

namespace kintsugi::core::cuda {

#define KINTSUGI_GPU_FAMILY(name) const Family& name##_family();
#include "engines/cuda/arch/families.def"
#undef KINTSUGI_GPU_FAMILY

namespace {

std::span<const Family* const> families() {
  static const std::array tables{
#define KINTSUGI_GPU_FAMILY(name) &name##_family(),
#include "engines/cuda/arch/families.def"
#undef KINTSUGI_GPU_FAMILY
  };
  return tables;
}

}  // namespace

// In a build without device code the kernels count as present, so that plans can be made.
// kernels_missing_reason() reports that nothing can run.
bool Family::has_gemm_kernels() const {
  return !gemm_image.empty() && (engine_images().empty() || has_image(engine_images(), gemm_image));
}

const DmmaKernels* Family::available_dmma(ElementType type) const {
  return has_gemm_kernels() ? dmma[static_cast<std::size_t>(type)] : nullptr;
}

std::span<const Accumulator> Family::available_fp16_bf16_accumulators() const {
  return has_gemm_kernels() ? fp16_bf16_accumulators : fp16_bf16_accumulators.last(1);  // cuBLAS's
}

const Family& family_of(int major, int minor) {
  for (const Family* family : families()) {
    if (family->matches(major, minor)) return *family;
  }
  return *families().back();
}

const Family& current_family() {
  if (driver().devices == 0) return *families().back();
  const Device device = device_in_use();
  return family_of(device_attribute(compute_capability_major, device),
                   device_attribute(compute_capability_minor, device));
}

}  // namespace kintsugi::core::cuda
