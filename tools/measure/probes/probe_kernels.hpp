// Kernels of the probes by name, and their launch.
#pragma once

#include <array>
#include <cstdint>

#include "base/cuda/cuda_driver.hpp"
#include "tools/measure/machine/device.hpp"

namespace kintsugi::measure {

// Returns why there are no probes; empty if there are.
std::string probes_missing_reason();

// True if that file was built; one of another GPU generation may not be.
bool has_probes(const char* file);

// Returns the `extern "C"` kernel of that name in tools/measure/probes/FILE.cu.
core::cuda::Kernel probe_kernel(const char* file, const char* name);

struct ProbeGrid {
  std::int64_t blocks = 1;
  int threads = 1;
  int shared_bytes = 0;
};

void launch_probe_pointers(const DeviceStream& stream, core::cuda::Kernel kernel, const ProbeGrid& grid,
                           void** arguments);

// Launches a probe; arguments must have the kernel's exact types.
template <class... Arguments>
void launch_probe(const DeviceStream& stream, core::cuda::Kernel kernel, const ProbeGrid& grid,
                  const Arguments&... arguments) {
  std::array<void*, sizeof...(Arguments)> pointers{
      const_cast<void*>(static_cast<const void*>(&arguments))...};
  launch_probe_pointers(stream, kernel, grid, pointers.data());
}

}  // namespace kintsugi::measure
