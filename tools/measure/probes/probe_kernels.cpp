#include "tools/measure/probes/probe_kernels.hpp"

#include <fmt/format.h>

#include "base/cuda/cuda_driver.hpp"

namespace kintsugi::core::cuda {

KernelImages probe_images();  // cmake/DeviceCode.cmake
DeviceBuild probe_build();

}  // namespace kintsugi::core::cuda

namespace kintsugi::measure {

using namespace core::cuda;

std::string probes_missing_reason() {
  if (!probe_images().empty()) return {};
  return fmt::format("this program was built without device code ({})", probe_build().why_missing);
}

bool has_probes(const char* file) { return has_image(probe_images(), file); }

Kernel probe_kernel(const char* file, const char* name) {
  Kernel kernel = nullptr;
  check(driver().library_kernel(&kernel, loaded_image(probe_images(), file), name), name);
  return kernel;
}

void launch_probe_pointers(const DeviceStream& stream, Kernel kernel, const ProbeGrid& grid,
                           void** arguments) {
  Device device = 0;
  check(driver().context_device(&device), "cuCtxGetDevice");
  if (grid.shared_bytes > 0) {
    check(driver().kernel_set_attribute(function_dynamic_shared_bytes, grid.shared_bytes, kernel, device),
          "cuKernelSetAttribute");
  }
  const LaunchConfig config{.grid = {static_cast<unsigned>(grid.blocks), 1, 1},
                            .block = {static_cast<unsigned>(grid.threads), 1, 1},
                            .shared_bytes = static_cast<unsigned>(grid.shared_bytes),
                            .stream = stream.native()};
  check(driver().launch_kernel(&config, kernel, arguments, nullptr), "cuLaunchKernelEx");
}

}  // namespace kintsugi::measure
