#include "device.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/lock.hpp"
#include "core/settings.hpp"

namespace kintsugi::cublas {

using namespace drop_in;

namespace {

// CUDA_MEMCPY2D of the driver.
struct Copy2d {
  struct Side {
    std::size_t x_bytes = 0, y = 0;
    int memory_type = device_memory;
    void* host = nullptr;
    std::uintptr_t device = 0;
    void* array = nullptr;
    std::size_t pitch = 0;
  };
  static constexpr int host_memory = 1;    // CU_MEMORYTYPE_HOST
  static constexpr int device_memory = 2;  // CU_MEMORYTYPE_DEVICE

  Side source, target;
  std::size_t width_bytes = 0, height = 0;
};
static_assert(sizeof(Copy2d) == 128);

// CUmemPoolProps of the driver.
struct PoolProperties {
  std::int32_t allocation_type = 1;  // CU_MEM_ALLOCATION_TYPE_PINNED
  std::int32_t handle_types = 0;     // CU_MEM_HANDLE_TYPE_NONE
  std::int32_t location_type = 1;    // CU_MEM_LOCATION_TYPE_DEVICE
  std::int32_t location = 0;         // the device
  void* security = nullptr;
  std::size_t max_bytes = 0;  // no limit
  unsigned char reserved[56] = {};
};
static_assert(sizeof(PoolProperties) == 88);
constexpr int release_threshold = 4;  // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD

// A function of the driver, whatever its type; nullptr: the driver lacks it.
struct Found {
  void* address;
  template <class Function>
  operator Function*() const {
    return reinterpret_cast<Function*>(address);
  }
};

// Finds a function in the driver. The driver is loaded already, since the caller has a handle of cuBLAS.
Found find(const char* name) {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return {library != nullptr ? ::dlsym(library, name) : nullptr};
}

struct Driver {
  int (*context_device)(int*) = find("cuCtxGetDevice");
  int (*device_count)(int*) = find("cuDeviceGetCount");
  int (*pointer_attribute)(void*, int, std::uintptr_t) = find("cuPointerGetAttribute");
  int (*device_total_memory)(std::size_t*, int) = find("cuDeviceTotalMem_v2");
  int (*is_capturing)(void*, int*) = find("cuStreamIsCapturing");
  int (*copy_2d)(const Copy2d*, void*) = find("cuMemcpy2DAsync_v2");
  int (*set_bytes)(std::uintptr_t, unsigned char, std::size_t, void*) = find("cuMemsetD8Async");
  int (*copy_to_device)(std::uintptr_t, const void*, std::size_t, void*) = find("cuMemcpyHtoDAsync_v2");
  int (*stream_create)(void**, unsigned) = find("cuStreamCreate");
  int (*stream_destroy)(void*) = find("cuStreamDestroy_v2");
  int (*pool_create)(void**, const PoolProperties*) = find("cuMemPoolCreate");
  int (*pool_set_attribute)(void*, int, void*) = find("cuMemPoolSetAttribute");
  int (*pool_allocate)(std::uintptr_t*, std::size_t, void*, void*) = find("cuMemAllocFromPoolAsync");
  int (*memory_free)(std::uintptr_t, void*) = find("cuMemFreeAsync");
  int (*event_create)(void**, unsigned) = find("cuEventCreate");
  int (*stream_synchronize)(void*) = find("cuStreamSynchronize");
  int (*event_record)(void*, void*) = find("cuEventRecord");
  int (*event_query)(void*) = find("cuEventQuery");
  int (*event_elapsed)(float*, void*, void*) = find("cuEventElapsedTime");
};

constinit MadeOnce<Driver> driver_once([] { return Driver(); });
const Driver& the_driver() { return driver_once.get(); }

}  // namespace

std::optional<int> current_device() {
  const Driver& driver = the_driver();
  int device = 0;
  if (driver.context_device == nullptr || driver.context_device(&device) != 0) return std::nullopt;
  return device;
}

int device_count() {
  const Driver& driver = the_driver();
  int count = 0;
  return driver.device_count != nullptr && driver.device_count(&count) == 0 ? count : 0;
}

// The driver does not know memory that is the host's alone.
bool is_in_device_memory(const void* pointer) {
  constexpr int memory_type = 2;       // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
  constexpr unsigned host_memory = 1;  // CU_MEMORYTYPE_HOST
  const Driver& driver = the_driver();
  unsigned type = host_memory;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  return driver.pointer_attribute != nullptr && driver.pointer_attribute(&type, memory_type, address) == 0 &&
         type != host_memory;
}

bool is_captured(void* stream) {
  const Driver& driver = the_driver();
  int status = 0;
  return driver.is_capturing != nullptr && (driver.is_capturing(stream, &status) != 0 || status != 0);
}

void* make_event() {
  const Driver& driver = the_driver();
  void* event = nullptr;
  const bool has_events = driver.event_create != nullptr && driver.event_record != nullptr &&
                          driver.event_query != nullptr && driver.event_elapsed != nullptr;
  return has_events && driver.event_create(&event, 0) == 0 ? event : nullptr;
}

bool record_event(void* event, void* stream) { return the_driver().event_record(event, stream) == 0; }

std::optional<double> seconds_between(void* first, void* second) {
  const Driver& driver = the_driver();
  float milliseconds = 0;
  if (driver.event_query(second) != 0 || driver.event_elapsed(&milliseconds, first, second) != 0)
    return std::nullopt;
  return static_cast<double>(milliseconds) * 1e-3;
}

bool set_to_zero(void* memory, std::size_t bytes, void* stream) {
  const Driver& driver = the_driver();
  return driver.set_bytes != nullptr &&
         driver.set_bytes(reinterpret_cast<std::uintptr_t>(memory), 0, bytes, stream) == 0;
}

namespace {

bool copy_rows(const DeviceRows& rows, const Copy2d::Side& target, std::size_t pitch, void* stream) {
  const Driver& driver = the_driver();
  if (driver.copy_2d == nullptr) return false;
  Copy2d copy;
  copy.source.device = reinterpret_cast<std::uintptr_t>(rows.first);
  copy.source.pitch = rows.pitch;
  copy.target = target;
  copy.target.pitch = pitch;
  copy.width_bytes = rows.bytes;
  copy.height = rows.count;
  return driver.copy_2d(&copy, stream) == 0;
}

}  // namespace

bool copy_on_device(const DeviceRows& rows, void* target, std::size_t pitch, void* stream) {
  Copy2d::Side side;
  side.device = reinterpret_cast<std::uintptr_t>(target);
  return copy_rows(rows, side, pitch, stream);
}

bool copy_to_host(const DeviceRows& rows, void* target, void* stream) {
  Copy2d::Side side;
  side.memory_type = Copy2d::host_memory;
  side.host = target;
  return copy_rows(rows, side, rows.bytes, stream);
}

bool synchronize(void* stream) {
  const Driver& driver = the_driver();
  return driver.stream_synchronize != nullptr && driver.stream_synchronize(stream) == 0;
}

bool fill_rows(const void* row, const DeviceRows& rows, void* stream) {
  const Driver& driver = the_driver();
  if (driver.copy_2d == nullptr) return false;
  const auto first = reinterpret_cast<std::uintptr_t>(rows.first);
  Copy2d copy;
  copy.source.device = reinterpret_cast<std::uintptr_t>(row);  // later copies read the rows that are filled
  copy.source.pitch = rows.pitch;
  copy.target.pitch = rows.pitch;
  copy.width_bytes = rows.bytes;
  for (std::size_t filled = 0; filled < rows.count; filled += copy.height) {
    copy.target.device = first + filled * rows.pitch;
    copy.height = filled == 0 ? 1 : std::min(filled, rows.count - filled);
    if (driver.copy_2d(&copy, stream) != 0) return false;
    copy.source.device = first;
  }
  return true;
}

// ------------------------------------------------------------------ workspaces

namespace {

// Returns the bytes of a device's memory; 0 if the driver does not tell.
std::int64_t memory_bytes(int device) {
  const Driver& driver = the_driver();
  std::size_t bytes = 0;
  if (driver.device_total_memory == nullptr || driver.device_total_memory(&bytes, device) != 0) return 0;
  return static_cast<std::int64_t>(bytes);
}

// Makes a memory pool of the device, which keeps 16 MiB of freed memory when the device synchronizes. Returns
// nullptr if the driver makes no pool.
void* make_pool(int device) {
  const Driver& driver = the_driver();
  PoolProperties properties;
  properties.location = device;
  void* pool = nullptr;
  const bool is_made = driver.pool_create != nullptr && driver.pool_set_attribute != nullptr &&
                       driver.pool_allocate != nullptr && driver.memory_free != nullptr &&
                       driver.pool_create(&pool, &properties) == 0;
  if (!is_made) return nullptr;
  std::uint64_t threshold = std::uint64_t{16} << 20;
  driver.pool_set_attribute(pool, release_threshold, &threshold);
  return pool;
}

constexpr int max_devices = 128;

// Constants with their length. Constants that longer ones have replaced are kept, since captured graphs may
// read them.
struct DeviceConstants {
  Constants constants;
  std::size_t bytes;  // of the zeros
};

struct DevicePool {
  std::atomic<bool> tried = false;
  std::atomic<void*> pool = nullptr;  // nullptr: the device has none
  std::atomic<const DeviceConstants*> constants = nullptr;
};
constinit std::array<DevicePool, max_devices> pools{};

// Returns the device's pool, which the first call makes; nullptr if the device has none.
void* pool_of(int device) {
  if (device < 0 || device >= max_devices) return nullptr;
  DevicePool& found = pools[static_cast<std::size_t>(device)];
  if (!found.tried.load(std::memory_order_acquire)) {
    const std::lock_guard lock(pools_mutex);
    if (!found.tried) found.pool = make_pool(device);
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

Workspace::Workspace(int device, std::size_t bytes, void* stream) : stream_(stream) {
  if (bytes == 0) return;
  void* const pool = pool_of(device);
  if (pool == nullptr) return;
  const Driver& driver = the_driver();
  std::uintptr_t memory = 0;
  if (driver.pool_allocate(&memory, bytes, pool, stream) == 0) pointer_ = reinterpret_cast<void*>(memory);
}

Workspace::~Workspace() {
  if (pointer_ != nullptr) the_driver().memory_free(reinterpret_cast<std::uintptr_t>(pointer_), stream_);
}

namespace {

// Takes memory for constants from the pool and fills it. Returns nullptr if the driver refuses.
const DeviceConstants* make_constants(void* pool, std::size_t zero_bytes) {
  const Driver& driver = the_driver();
  constexpr unsigned non_blocking = 1;  // CU_STREAM_NON_BLOCKING: no other stream is waited for
  constexpr std::size_t zeros_at = 256;
  static constexpr struct {
    float f32 = 1;
    double f64 = 1;  // 8 bytes behind f32
  } ones;
  void* stream = nullptr;
  if (driver.set_bytes == nullptr || driver.copy_to_device == nullptr || driver.stream_create == nullptr ||
      driver.stream_destroy == nullptr || driver.stream_synchronize == nullptr ||
      driver.stream_create(&stream, non_blocking) != 0)
    return nullptr;
  std::uintptr_t memory = 0;
  const bool is_filled = driver.pool_allocate(&memory, zeros_at + zero_bytes, pool, stream) == 0 &&
                         driver.set_bytes(memory, 0, zeros_at + zero_bytes, stream) == 0 &&
                         driver.copy_to_device(memory, &ones, sizeof ones, stream) == 0 &&
                         driver.stream_synchronize(stream) == 0;
  if (!is_filled && memory != 0) driver.memory_free(memory, stream);
  driver.stream_destroy(stream);
  const auto address = [&](std::size_t offset) { return reinterpret_cast<const void*>(memory + offset); };
  if (!is_filled) return nullptr;
  return new DeviceConstants{{.one_f32 = address(0), .one_f64 = address(8), .zeros = address(zeros_at)},
                             zero_bytes};
}

}  // namespace

const Constants* constants(int device, std::size_t bytes, void* stream) {
  void* const pool = pool_of(device);
  if (pool == nullptr) return nullptr;
  std::atomic<const DeviceConstants*>& kept = pools[static_cast<std::size_t>(device)].constants;
  const auto suffice = [&](const DeviceConstants* all) { return all != nullptr && all->bytes >= bytes; };
  const DeviceConstants* found = kept.load(std::memory_order_acquire);
  if (suffice(found)) return &found->constants;
  if (is_captured(stream)) return nullptr;
  const std::lock_guard lock(pools_mutex);
  found = kept.load(std::memory_order_relaxed);
  if (suffice(found)) return &found->constants;
  found = make_constants(pool, std::bit_ceil(std::max(bytes, std::size_t{1} << 20)));
  if (found == nullptr) return nullptr;
  kept.store(found, std::memory_order_release);
  return &found->constants;
}

}  // namespace kintsugi::cublas
