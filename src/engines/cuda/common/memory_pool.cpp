#include "engines/cuda/common/memory_pool.hpp"

#include <array>
#include <atomic>
#include <cstdint>

#include "base/threads/fork.hpp"

namespace kintsugi::core::cuda {

namespace {

// Memory pool of a device. It belongs to no context, and is never destroyed, since the driver may be unloaded
// before.
struct DevicePool {
  std::atomic<bool> tried = false;         // true once the pool was created, or could not be
  std::atomic<MemoryPool> pool = nullptr;  // nullptr: the device has none
};
constinit std::array<DevicePool, max_devices> pools{};

// Returns nullptr if the driver creates no pool.
MemoryPool make_pool(Device device) {
  MemoryPoolProperties properties;
  properties.location = number_of(device);
  MemoryPool pool = nullptr;
  if (driver().pool_create(&pool, &properties) != 0) return nullptr;
  std::uint64_t kept_bytes = kept_bytes_of_pool;
  driver().pool_set_attribute(pool, pool_release_threshold, &kept_bytes);
  return pool;
}

MemoryPool pool_of_current_device() {
  const Device device = current_device();
  return device < max_devices ? pools[static_cast<std::size_t>(device)].pool.load() : nullptr;
}

}  // namespace

void prepare_pool() {
  const Device device = current_device();
  if (device >= max_devices) return;
  DevicePool& device_pool = pools[static_cast<std::size_t>(device)];
  if (device_pool.tried) return;
  const auto lock = lock_shared_state();
  if (!device_pool.tried) device_pool.pool = make_pool(device);
  device_pool.tried = true;
}

// The device's default pool is used if the library has no pool, or if the driver refuses the library's pool
// because the device was reset. The default pool keeps no freed memory.
Result allocate_in_stream(Address* result, std::size_t bytes, Stream stream) {
  if (const MemoryPool pool = pool_of_current_device(); pool != nullptr) {
    const Result status = driver().pool_allocate_async(result, bytes, pool, stream);
    if (status == 0 || status == error_out_of_memory) return status;
  }
  return driver().memory_allocate_async(result, bytes, stream);
}

void trim_pools() noexcept {
  for (const DevicePool& device_pool : pools) {
    if (const MemoryPool pool = device_pool.pool.load(); pool != nullptr) driver().pool_trim(pool, 0);
  }
}

}  // namespace kintsugi::core::cuda
