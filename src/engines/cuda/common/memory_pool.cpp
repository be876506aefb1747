#include "engines/cuda/common/memory_pool.hpp"

#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/threads/fork.hpp"

namespace kintsugi::core::cuda {

namespace {

// Memory pool of a device. It belongs to no context, and is never destroyed, since the driver may be unloaded
// before.
struct DevicePool {
  std::atomic<bool> tried = false;         // true once the pool was created, or could not be
  std::atomic<MemoryPool> pool = nullptr;  // nullptr: the device has none
  bool keeps_all = false;                  // true: it keeps all freed memory
};
constinit std::array<DevicePool, max_devices> pools{};

void set_kept_bytes(MemoryPool pool, std::uint64_t bytes) {
  const RelaxedCaptureMode relaxed;
  driver().pool_set_attribute(pool, pool_release_threshold, &bytes);
}

// Gives memory that no work uses back to the driver until the pool has only `kept_bytes` left.
void trim(MemoryPool pool, std::size_t kept_bytes) {
  const RelaxedCaptureMode relaxed;
  driver().pool_trim(pool, kept_bytes);
}

// Lets pools keep all freed memory until no call has allocated much for idle_time. A thread waits for that;
// it exists only while some pool keeps all.
class Keeping {
 public:
  // Calls allocate from the pool: it keeps all freed memory from now on.
  void extend(DevicePool& device_pool) {
    const std::lock_guard lock(mutex_);
    last_use_ = Clock::now();
    if (!is_waiting_ && !start()) return;
    if (device_pool.keeps_all) return;
    device_pool.keeps_all = true;
    set_kept_bytes(device_pool.pool, std::numeric_limits<std::uint64_t>::max());
  }

  // Ends the thread, because the library, whose code it runs, may be unloaded now.
  void end() {
    if (thread_ == nullptr || fork_depth() != fork_depth_) return;  // a child has no such thread
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    woken_.notify_all();
    thread_->join();
    delete thread_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  // Programs that make a large call more rarely lose less than a thirtieth of their time by mapping its
  // memory.
  static constexpr auto idle_time = std::chrono::seconds(1);

  // Starts the thread. Returns false if the system has no thread for it.
  bool start() {
    if (thread_ != nullptr && fork_depth() == fork_depth_) {
      thread_->join();  // it has ended
      delete thread_;
    }
    thread_ = nullptr;
    fork_depth_ = fork_depth();
    // Signals of the program are for its own threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = new std::thread([this] { wait_until_idle(); });
      is_waiting_ = true;
    } catch (const std::system_error&) {
      is_waiting_ = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return is_waiting_;
  }

  void wait_until_idle() {
    std::unique_lock lock(mutex_);
    while (!is_ending_ && Clock::now() < last_use_ + idle_time)
      woken_.wait_until(lock, last_use_ + idle_time);
    if (is_ending_) return;
    for (DevicePool& device_pool : pools) {
      if (!device_pool.keeps_all) continue;
      device_pool.keeps_all = false;
      set_kept_bytes(device_pool.pool, kept_bytes_of_pool);  // what a stream still uses goes when it ends
      trim(device_pool.pool, kept_bytes_of_pool);
    }
    is_waiting_ = false;
  }

  std::mutex mutex_;
  std::condition_variable woken_;
  std::thread* thread_ = nullptr;
  int fork_depth_ = 0;  // of the process that has the thread
  bool is_waiting_ = false;
  bool is_ending_ = false;
  Clock::time_point last_use_;
};

// It is never destroyed, since a child has the mutex and the condition as the parent's thread left them.
Keeping& keeping = *new Keeping;
struct EndOfKeeping {
  ~EndOfKeeping() { keeping.end(); }
} end_of_keeping;

// Returns nullptr if the driver creates no pool.
MemoryPool make_pool(Device device) {
  MemoryPoolProperties properties;
  properties.location = number_of(device);
  MemoryPool pool = nullptr;
  if (driver().pool_create(&pool, &properties) != 0) return nullptr;
  set_kept_bytes(pool, kept_bytes_of_pool);
  return pool;
}

DevicePool* pool_of_current_device() {
  const Device device = current_device();
  if (device >= max_devices) return nullptr;
  DevicePool& device_pool = pools[static_cast<std::size_t>(device)];
  return device_pool.pool.load() == nullptr ? nullptr : &device_pool;
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
  if (DevicePool* device_pool = pool_of_current_device(); device_pool != nullptr) {
    constexpr std::size_t large_bytes = kept_bytes_of_pool / 8;  // several streams may have as much at once
    if (bytes > large_bytes) keeping.extend(*device_pool);
    const Result status = driver().pool_allocate_async(result, bytes, device_pool->pool, stream);
    if (status == 0 || status == error_out_of_memory) return status;
  }
  return driver().memory_allocate_async(result, bytes, stream);
}

void trim_pools() noexcept {
  for (const DevicePool& device_pool : pools) {
    if (const MemoryPool pool = device_pool.pool.load(); pool != nullptr) trim(pool, 0);
  }
}

}  // namespace kintsugi::core::cuda
