// Kernels by name, and their launch.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/cuda/cuda_driver.hpp"
#include "base/queue.hpp"

namespace kintsugi::core::cuda {

struct Extent {
  std::int64_t x = 1;
  std::int64_t y = 1;
  std::int64_t z = 1;
  std::int64_t cluster = 0;  // thread blocks of a cluster, neighbours along x; 0: the kernel has no clusters
};

// Why the kernels cannot be loaded; empty: they can.
std::string kernels_missing_reason();

// A kernel that is `extern "C"` in src/engines/cuda/**/FILE.cu; loaded when it is first launched. Belongs to
// no context.
class KernelName {
 public:
  // `waits_for_grid_dependency`: its source waits for what comes before it (ptx/griddepcontrol.cuh), so that
  // it may be launched earlier where that was compiled.
  constexpr KernelName(const char* file, const char* name, bool waits_for_grid_dependency = false)
      : file_(file), name_(name), waits_for_grid_dependency_(waits_for_grid_dependency) {}

  Kernel get() const;
  const char* name() const { return name_; }
  // Whether it may begin before the kernels in front of it have ended (programmatic dependent launch) on the
  // current device.
  bool may_overlap() const;
  // Dynamic shared memory that makes more than 48 KB with the kernel's static one has to be asked for, of
  // each device; threads may ask for different sizes.
  void allow_shared_bytes(std::int64_t bytes) const;
  // Of each device once. An SM has to be idle before its memory is divided anew between shared memory and
  // cache; so all kernels ask for the same, and within a call nothing is divided anew.
  void prefer_shared_memory() const;

 private:
  const char* file_;
  const char* name_;
  bool waits_for_grid_dependency_;
  mutable std::once_flag loaded_{};
  mutable Kernel kernel_ = nullptr;
  mutable std::mutex mutex_{};
  mutable std::array<std::int64_t, most_devices> shared_bytes_{};  // that were asked for
  mutable std::array<std::atomic<bool>, most_devices> asked_for_shared_{};
  mutable std::array<std::atomic<int>, most_devices> ptx_versions_{};  // 0: not asked for yet
};

inline constexpr bool waits_for_grid_dependency = true;

// Fails with device_error, naming the kernel. A grid with no block is no launch. Arguments are the kernel's
// own types.
void launch_pointers(const KernelName& kernel, const Extent& grid, std::int64_t threads,
                     std::int64_t shared_bytes, const Queue& queue, void** arguments);

// A grid's second extent; more batch items take several launches.
inline constexpr std::int64_t most_launched_items = 65535;

// Batch items, a launch for as many as a grid has: visit(first, number).
template <class Visit>
void for_each_launch(std::int64_t items, const Visit& visit) {
  for (std::int64_t first = 0; first < items; first += most_launched_items)
    visit(first, std::min(most_launched_items, items - first));
}

template <class... Arguments>
void launch(const KernelName& kernel, const Extent& grid, std::int64_t threads, std::int64_t shared_bytes,
            const Queue& queue, const Arguments&... arguments) {
  std::array<void*, sizeof...(Arguments)> pointers{
      const_cast<void*>(static_cast<const void*>(&arguments))...};
  launch_pointers(kernel, grid, threads, shared_bytes, queue, pointers.data());
}

}  // namespace kintsugi::core::cuda
