#include "engines/cuda/common/launch.hpp"

#include <array>

#include "base/cuda/cuda_driver.hpp"
#include "base/status.hpp"
#include "base/text/format_text.hpp"
#include "engines/cuda/common/launch_graph.hpp"

namespace kintsugi::core::cuda {

std::string kernels_missing_reason() {
  if (!engine_images().empty()) return {};
  return fmt::format("this library was built without device code ({})", engine_build().why_missing);
}

Kernel KernelName::get() const {
  if (file_ == nullptr) return kernel_;
  std::call_once(loaded_, [&] {
    check(driver().library_kernel(&kernel_, loaded_image(engine_images(), file_), name_), name_);
  });
  return kernel_;
}

namespace {

void set_attribute(Kernel kernel, int attribute, std::int64_t value, const char* name) {
  check(driver().kernel_set_attribute(attribute, static_cast<int>(value), kernel, current_device()), name);
}

}  // namespace

// Code that was compiled for less than 9.0 has no grid-dependency wait (ptx/griddepcontrol.cuh), even if it
// runs on 9.0: the driver may have compiled it there from PTX of 8.0. So the PTX version of the loaded code
// decides. That is the __CUDA_ARCH__ with which the source was compiled, for machine code as well
// (CUfunction_attribute in the driver's reference).
bool KernelName::may_overlap() const {
  if (!waits_for_grid_dependency_) return false;
  constexpr int min_version = 90;
  const Device device = current_device();
  std::atomic<int>& version = ptx_versions_.at(static_cast<std::size_t>(device));
  if (version.load(std::memory_order_relaxed) == 0) {
    int ptx_version = 0;
    check(driver().kernel_attribute(&ptx_version, function_ptx_version, get(), device), name_);
    version.store(ptx_version, std::memory_order_relaxed);
  }
  return version.load(std::memory_order_relaxed) >= min_version;
}

// The limit is never lowered, since another thread may be about to launch with a larger size.
void KernelName::allow_shared_bytes(std::int64_t bytes) const {
  const Kernel kernel = get();
  const std::lock_guard lock(mutex_);
  std::int64_t& allowed = shared_bytes_.at(static_cast<std::size_t>(current_device()));
  if (bytes <= allowed) return;
  set_attribute(kernel, function_dynamic_shared_bytes, bytes, name_);
  allowed = bytes;
}

// The attribute is a hint: if the driver refuses it, the launch does not fail.
void KernelName::prefer_shared_memory() const {
  constexpr int percent = 100;
  std::atomic<bool>& has_requested = has_requested_shared_.at(static_cast<std::size_t>(current_device()));
  if (has_requested.load(std::memory_order_relaxed)) return;
  driver().kernel_set_attribute(function_preferred_shared, percent, get(), current_device());
  has_requested.store(true, std::memory_order_relaxed);
}

namespace {

// Sets the attributes of a launch and returns their number. Launches with clusters ask for few SMs: by
// default every thread block of a cluster gets an SM of its own, and while another kernel occupies SMs, some
// clusters never start although the free SMs would hold them. This happened to clusters of four thread
// blocks while 100 of 132 SMs were occupied. It happened to clusters of two while 80 were occupied,
// although their thread blocks can share an SM.
unsigned attributes_of(const Launch& launch, std::array<LaunchAttribute, 3>& attributes) {
  unsigned count = 0;
  if (launch.overlaps) attributes[count++] = LaunchAttribute::overlapping();
  if (launch.cluster > 0) {
    attributes[count++] = LaunchAttribute::cluster(launch.cluster);
    attributes[count++] = LaunchAttribute::cluster_on_few_sms();
  }
  return count;
}

// Loads the kernel and prepares it for a launch of this size.
Launch make_launch(const KernelName& kernel, const Extent& grid, std::int64_t threads,
                   std::int64_t shared_bytes) {
  constexpr std::int64_t max_blocks_y = 65535;
  if (grid.x > 0x7fffffff || grid.y > max_blocks_y || grid.z > max_blocks_y)
    fail(Status::not_supported, "a grid of {} x {} x {} blocks is more than a device takes", grid.x, grid.y,
         grid.z);
  kernel.prefer_shared_memory();
  if (shared_bytes > 0) kernel.allow_shared_bytes(shared_bytes);
  const auto size = [](std::int64_t value) { return static_cast<unsigned>(value); };
  return {.kernel_name = &kernel,
          .kernel = kernel.get(),
          .grid = {size(grid.x), size(grid.y), size(grid.z)},
          .threads = size(threads),
          .shared_bytes = size(shared_bytes),
          .cluster = static_cast<std::int32_t>(grid.cluster),
          .overlaps = kernel.may_overlap()};
}

}  // namespace

void launch_now(const Launch& launch, void* stream, void** arguments) {
  std::array<LaunchAttribute, 3> attributes;
  const unsigned count = attributes_of(launch, attributes);
  const LaunchConfig config{{launch.grid[0], launch.grid[1], launch.grid[2]},
                            {launch.threads, 1, 1},
                            launch.shared_bytes,
                            stream,
                            attributes.data(),
                            count};
  const Result result = driver().launch_kernel(&config, launch.kernel, arguments, nullptr);
  if (result == 0) return;
  check(result,
        fmt::format("launch of kernel {}, {} x {} x {} blocks of {} threads and {} bytes of shared memory",
                    launch.kernel_name->name(), launch.grid[0], launch.grid[1], launch.grid[2],
                    launch.threads, launch.shared_bytes)
            .c_str());
}

void launch_arguments(const KernelName& kernel, const Extent& grid, std::int64_t threads,
                      std::int64_t shared_bytes, const Queue& queue,
                      std::span<const LaunchArgument> arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  const Launch launch = make_launch(kernel, grid, threads, shared_bytes);
  if (LaunchRecording::record(launch, queue, arguments)) return;
  std::array<void*, max_launch_arguments> pointers{};
  for (std::size_t i = 0; i < arguments.size(); ++i) pointers.at(i) = const_cast<void*>(arguments[i].data);
  launch_now(launch, queue.stream, pointers.data());
}

}  // namespace kintsugi::core::cuda
