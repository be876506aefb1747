#include "workspace.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "cublas/mutexes.hpp"
#include "cublas/settings.hpp"
#include "driver.hpp"

namespace kintsugi::cublas {

namespace {

constexpr int max_devices = 128;

struct DevicePool {
  std::atomic<bool> tried = false;
  std::atomic<void*> pool = nullptr;  // nullptr: the device has none
};
constinit std::array<DevicePool, max_devices> pools{};

// Returns the device's pool, which the first call makes; nullptr if the device has none. Without a pool the
// library allocates the workspace itself.
void* pool_of(int device) {
  if (device < 0 || device >= max_devices) return nullptr;
  DevicePool& found = pools[static_cast<std::size_t>(device)];
  if (!found.tried.load(std::memory_order_acquire)) {
    const std::lock_guard lock(pools_mutex);
    if (!found.tried) found.pool = make_pool(device, workspace_limit(device));
    found.tried.store(true, std::memory_order_release);
  }
  return found.pool;
}

}  // namespace

// The default is a small fraction of the device's memory, since a program that fills the device with its own
// data must not fail for lack of a workspace. The memory that the library takes besides the pool counts as
// part of it: kernels, graphs and a handle of cuBLAS take 68 MiB on an H100, 100 on an H200.
std::int64_t workspace_limit(int device) {
  constexpr std::int64_t max_default = std::int64_t{1} << 30;
  constexpr std::int64_t memory_divisor = 20;  // at most one twentieth of the device's memory
  constexpr std::int64_t taken_besides = std::int64_t{104} << 20;
  if (settings().workspace_limit != 0) return settings().workspace_limit;
  const std::int64_t bytes = memory_bytes(device);
  const std::int64_t total = bytes > 0 ? std::min(max_default, bytes / memory_divisor) : max_default;
  return std::max(total - taken_besides, total / 2);
}

Workspace::Workspace(int device, std::size_t bytes, void* stream) : bytes_(bytes), stream_(stream) {
  if (bytes == 0) return;
  if (void* pool = pool_of(device); pool != nullptr) pointer_ = allocate_from(pool, bytes, stream);
}

Workspace::~Workspace() {
  if (pointer_ != nullptr) free_in_stream(pointer_, stream_);
}

void give_back_workspaces() {
  for (const DevicePool& device : pools)
    if (void* pool = device.pool.load(); pool != nullptr) trim(pool);
}

}  // namespace kintsugi::cublas
