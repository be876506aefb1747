// Kernels by name, and their launches.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "base/cuda/cuda_driver.hpp"
#include "base/queue.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

// Extent of a grid in thread blocks.
struct Extent {
  std::int64_t x = 1;
  std::int64_t y = 1;
  std::int64_t z = 1;
  std::int64_t cluster = 0;  // thread blocks of a cluster, neighbors along x; 0: no clusters
};

// Reason why the kernels cannot be loaded; empty if they can.
std::string kernels_missing_reason();

// A kernel that is `extern "C"` in src/engines/cuda/**/FILE.cu. It is loaded at its first launch and belongs
// to no context.
class KernelName {
 public:
  // `waits_for_grid_dependency`: the kernel's source waits for the kernels before it
  // (ptx/griddepcontrol.cuh). If that wait was compiled into the loaded code, the kernel may begin before
  // they have ended.
  constexpr KernelName(const char* file, const char* name, bool waits_for_grid_dependency = false)
      : file_(file), name_(name), waits_for_grid_dependency_(waits_for_grid_dependency) {}

  // A kernel that is loaded already, and waits for the kernels before it.
  KernelName(const char* name, Kernel loaded)
      : file_(nullptr), name_(name), waits_for_grid_dependency_(true), kernel_(loaded) {}

  // Returns the kernel, loaded.
  Kernel get() const;
  const char* name() const { return name_; }
  // True if the kernel may begin on the current device before the kernels in front of it have ended
  // (programmatic dependent launch).
  bool may_overlap() const;
  // Allows the kernel `bytes` of dynamic shared memory on the current device. The driver demands this on each
  // device for more than 48 KB, static shared memory included. Several threads may allow different sizes.
  void allow_shared_bytes(std::int64_t bytes) const;
  // Requests the largest share of shared memory on the current device, once. All kernels request the same
  // share, since an SM must be idle before its memory is divided anew between shared memory and L1.
  void prefer_shared_memory() const;

 private:
  const char* file_;  // nullptr: kernel_ is loaded
  const char* name_;
  bool waits_for_grid_dependency_;
  mutable Kernel kernel_ = nullptr;
  mutable std::once_flag loaded_{};
  mutable std::mutex mutex_{};
  mutable std::array<std::int64_t, max_devices> shared_bytes_{};  // requested so far
  mutable std::array<std::atomic<bool>, max_devices> has_requested_shared_{};
  mutable std::array<std::atomic<int>, max_devices> ptx_versions_{};  // 0: not read yet
};

// Value of the last argument of KernelName's constructor.
inline constexpr bool waits_for_grid_dependency = true;

inline constexpr std::size_t max_launch_arguments = 8;

// One argument of a kernel, in host memory.
struct LaunchArgument {
  const void* data;
  std::size_t bytes;
};

// A launch whose kernel is loaded and has the shared memory that it needs.
struct Launch {
  const KernelName* kernel_name = nullptr;
  Kernel kernel = nullptr;
  unsigned grid[3] = {};
  unsigned threads = 0;
  unsigned shared_bytes = 0;
  std::int32_t cluster = 0;
  bool overlaps = false;  // KernelName::may_overlap()
};

// Launches the kernel without recording the launch. Throws device_error with the kernel's name if that fails.
void launch_now(const Launch& launch, void* stream, void** arguments);

// Launches the kernel, or records the launch if the thread has a LaunchRecording for the stream. Throws
// device_error with the kernel's name if that fails. A grid without thread blocks launches nothing. Arguments
// must have the types of the kernel's parameters.
void launch_arguments(const KernelName& kernel, const Extent& grid, std::int64_t threads,
                      std::int64_t shared_bytes, const Queue& queue,
                      std::span<const LaunchArgument> arguments);

// Largest second extent of a grid. More batch items take several launches.
inline constexpr std::int64_t max_launched_items = 65535;

// Calls visit(first, count) for consecutive groups of batch items. Each group fits one launch.
template <class Visit>
void for_each_launch(std::int64_t items, const Visit& visit) {
  for (std::int64_t first = 0; first < items; first += max_launched_items)
    visit(first, std::min(max_launched_items, items - first));
}

// Number of bytes of dynamic shared memory of kernels that use none.
inline constexpr std::int64_t no_shared_bytes = 0;

// launch_arguments() with the arguments as parameters.
template <class... Arguments>
void launch(const KernelName& kernel, const Extent& grid, std::int64_t threads, std::int64_t shared_bytes,
            const Queue& queue, const Arguments&... arguments) {
  static_assert(sizeof...(Arguments) <= max_launch_arguments);
  const std::array<LaunchArgument, sizeof...(Arguments)> argument_list{
      LaunchArgument{static_cast<const void*>(&arguments), sizeof arguments}...};
  launch_arguments(kernel, grid, threads, shared_bytes, queue, argument_list);
}

// Images of the engine's kernels; empty if the library was built without device code.
KernelImages engine_images();
// Description of the build of the device code, or the reason why there is none.
DeviceBuild engine_build();

// Sides and tiles without their first batch items, for steps that take several launches.

// Returns the side without its first `count` batch items. Ranges that all items share stay the same.
inline DeviceSide from_item(DeviceSide side, std::int64_t count) {
  side.item += count;
  if (side.ranges != nullptr && side.items > 1) side.ranges += count * side.matrix.vectors();
  return side;
}

// Returns the tile without its first `count` batch items, with the operands and selections of the others.
inline DeviceTile from_item(DeviceTile tile, std::int64_t count) {
  tile.item += count;
  tile.a = from_item(tile.a, count);
  tile.b = from_item(tile.b, count);
  if (tile.condition.selection != nullptr) tile.condition.selection += count;
  return tile;
}

}  // namespace kintsugi::core::cuda
