#include "engines/cuda/common/memory_pool.hpp"

#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads.hpp"

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

// Gives memory that no work uses back to the driver until the pool has only `kept` bytes left.
void trim(MemoryPool pool, std::size_t kept) {
  const RelaxedCaptureMode relaxed;
  driver().pool_trim(pool, kept);
}

// Blocks all signals in the calling thread while it exists, also in threads that this one starts: signals of
// the program are for its own threads.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

// Lets pools keep all freed memory until nothing large was allocated for idle_time. A thread waits for that
// time to pass, and trims them; it exists only while some pool keeps all.
class IdleTrimmer {
 public:
  // It is never destroyed, since a child of a fork has the mutex and the condition as the parent's thread
  // left them.
  static IdleTrimmer& instance;

  // Called before a large allocation. Makes the pool keep all freed memory.
  void extend(DevicePool& device_pool) {
    const std::lock_guard lock(mutex_);
    if (is_ending_) return;
    last_use_ = Clock::now();
    if (!is_waiting_ && !start()) return;
    if (device_pool.keeps_all) return;
    device_pool.keeps_all = true;
    set_kept_bytes(device_pool.pool, std::numeric_limits<std::uint64_t>::max());
  }

 private:
  using Clock = std::chrono::steady_clock;
  // Programs that make a large call more rarely lose less than a thirtieth of their time by mapping its
  // memory.
  static constexpr auto idle_time = std::chrono::seconds(1);

  // Starts the thread. Returns false if the system has no thread for it.
  bool start() {
    if (thread_.joinable()) thread_.join();  // it has ended
    if (owner_ != this_process()) std::atexit([] { instance.end(); });
    owner_ = this_process();
    const BlockedSignals blocked;
    try {
      thread_ = std::thread([this] { trim_when_idle(); });
    } catch (const std::exception&) {
      return false;
    }
    is_waiting_ = true;
    return true;
  }

  // Trims the pools and ends the thread, because the library, whose code it runs, may be unloaded now. It was
  // registered after the driver's own exit handlers, so it is called before them.
  void end() {
    if (owner_ != this_process()) return;  // a child of a fork does not have the thread
    std::thread thread;
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
      thread.swap(thread_);
    }
    woken_.notify_all();
    if (thread.joinable()) thread.join();
  }

  void trim_when_idle() {
    std::unique_lock lock(mutex_);
    while (true) {
      while (!is_ending_ && Clock::now() < last_use_ + idle_time)
        woken_.wait_until(lock, last_use_ + idle_time);
      std::vector<MemoryPool> idle_pools;
      for (DevicePool& device_pool : pools) {
        if (!std::exchange(device_pool.keeps_all, false)) continue;
        set_kept_bytes(device_pool.pool, kept_bytes_of_pool);
        idle_pools.push_back(device_pool.pool);
      }
      is_waiting_ = !idle_pools.empty();
      if (!is_waiting_) return;
      lock.unlock();  // calls may allocate while pools are trimmed
      for (const MemoryPool pool : idle_pools) trim(pool, kept_bytes_of_pool);
      lock.lock();
    }
  }

  // A number that no other process of a chain of forks has, and no process before the first start().
  static int this_process() { return fork_depth() + 1; }

  std::mutex mutex_;
  std::condition_variable woken_;
  std::thread thread_;
  std::atomic<int> owner_ = 0;  // this_process() of the process that has the thread
  bool is_waiting_ = false;
  bool is_ending_ = false;
  Clock::time_point last_use_;
};
IdleTrimmer& IdleTrimmer::instance = *new IdleTrimmer;

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
    if (bytes > large_bytes) IdleTrimmer::instance.extend(*device_pool);
    Result status = driver().pool_allocate_async(result, bytes, device_pool->pool, stream);
    if (status == error_out_of_memory) {  // pieces of other sizes that the pool keeps may be in the way
      trim(device_pool->pool, 0);
      status = driver().pool_allocate_async(result, bytes, device_pool->pool, stream);
    }
    if (status == 0 || status == error_out_of_memory) return status;
  }
  return driver().memory_allocate_async(result, bytes, stream);
}

void trim_pools() noexcept {
  for (const DevicePool& device_pool : pools) {
    const MemoryPool pool = device_pool.pool.load();
    if (pool != nullptr) trim(pool, 0);
  }
}

}  // namespace kintsugi::core::cuda
