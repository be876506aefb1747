#include "engines/cuda/arch/architecture.hpp"

#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/common/launch.hpp"

namespace kintsugi::core::cuda {

#define KINTSUGI_ARCHITECTURE(name) const Architecture& name##_architecture();
#include "engines/cuda/arch/architectures.def"
#undef KINTSUGI_ARCHITECTURE

namespace {

std::span<const Architecture* const> architectures() {
  static const std::array tables{
#define KINTSUGI_ARCHITECTURE(name) &name##_architecture(),
#include "engines/cuda/arch/architectures.def"
#undef KINTSUGI_ARCHITECTURE
  };
  return tables;
}

}  // namespace

// In a build without device code the kernels count as present, so that plans can be made.
// kernels_missing_reason() reports that nothing can run.
bool Architecture::has_gemm_kernels() const {
  return !gemm_image.empty() && (engine_images().empty() || has_image(engine_images(), gemm_image));
}

bool Architecture::has_simt_split() const { return has_simt_split_kernel && has_gemm_kernels(); }

const DmmaKernels* Architecture::available_dmma(ElementType type) const {
  return has_gemm_kernels() ? dmma[static_cast<std::size_t>(type)] : nullptr;
}

std::span<const Accumulator> Architecture::available_fp16_bf16_accumulators() const {
  return has_gemm_kernels() ? fp16_bf16_accumulators : fp16_bf16_accumulators.last(1);  // cuBLAS's
}

const Architecture& architecture_of(int major, int minor) {
  for (const Architecture* architecture : architectures()) {
    if (architecture->matches(major, minor)) return *architecture;
  }
  return *architectures().back();
}

const Architecture& current_architecture() {
  if (driver().devices == 0) return *architectures().back();
  const Device device = device_in_use();
  return architecture_of(device_attribute(compute_capability_major, device),
                         device_attribute(compute_capability_minor, device));
}

}  // namespace kintsugi::core::cuda
