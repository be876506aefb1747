#include "engines/cuda/common/clear.hpp"

#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/common/launch_recording.hpp"

namespace kintsugi::core::cuda {

void clear(const Queue& queue, void* target, std::size_t bytes) {
  static const KernelName kernel{"clear", "clear_bytes", waits_for_grid_dependency};
  constexpr std::size_t max_bytes_of_kernel = 4096;
  constexpr std::int64_t threads = 256;
  const auto address = reinterpret_cast<Address>(target);
  if (bytes > max_bytes_of_kernel) {
    LaunchRecording::issue_recorded();  // cuMemset is not recorded; earlier launches must come first
    return check(driver().set_bytes_async(address, 0, bytes, queue.stream), "cuMemsetD8Async");
  }
  launch(kernel, {}, threads, no_shared_bytes, queue, address, static_cast<std::int32_t>(bytes));
}

}  // namespace kintsugi::core::cuda
