#include "lab/probes/probe_kernels.hpp"

#include <map>
#include <string_view>

#include "base/kernel_image.hpp"
#include "base/status.hpp"

namespace kintsugi::core::cuda {

KernelImages probe_images();  // cmake/DeviceCode.cmake

}  // namespace kintsugi::core::cuda

namespace kintsugi::lab {

using namespace core::cuda;

namespace {

// Each fat binary once. Measurements are one thread's.
Library loaded(std::string_view file) {
  static std::map<std::string_view, Library> libraries;
  Library& library = libraries[file];
  if (library != nullptr) return library;
  for (const KernelImage& image : probe_images()) {
    if (file != image.name) continue;
    check(driver().library_load(&library, image.data, nullptr, nullptr, 0, nullptr, nullptr, 0), image.name);
    return library;
  }
  core::fail(core::Status::internal, "the laboratory has no device code \"{}\"", file);
}

}  // namespace

std::string probes_missing_reason() {
  return probe_images().empty() ? "this program was built without nvcc, and so without device code" : "";
}

Kernel probe_kernel(const char* file, const char* name) {
  Kernel kernel = nullptr;
  check(driver().library_kernel(&kernel, loaded(file), name), name);
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
  check(driver().launch_kernel(kernel, static_cast<unsigned>(grid.blocks), 1, 1,
                               static_cast<unsigned>(grid.threads), 1, 1,
                               static_cast<unsigned>(grid.shared_bytes), stream.native(), arguments, nullptr),
        "cuLaunchKernel");
}

}  // namespace kintsugi::lab
