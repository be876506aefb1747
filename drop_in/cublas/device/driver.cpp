#include "cublas/device/driver.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/lock.hpp"

namespace kintsugi::cublas {

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

// Functions of the driver: KINTSUGI_CUBLAS_DRIVER(f) expands f(name here, name in the driver, parameters) for
// each. clang-format off
#define KINTSUGI_CUBLAS_DRIVER(function)                                                               \
  function(context_device, "cuCtxGetDevice", (int*))                                                   \
      function(device_total_memory, "cuDeviceTotalMem_v2", (std::size_t*, int))                        \
          function(is_capturing, "cuStreamIsCapturing", (void*, int*))                                 \
              function(copy_2d, "cuMemcpy2DAsync_v2", (const Copy2d*, void*)) function(                \
                  set_bytes, "cuMemsetD8Async", (std::uintptr_t, unsigned char, std::size_t, void*))   \
                  function(pool_create, "cuMemPoolCreate", (void**, const PoolProperties*))            \
                      function(pool_set_attribute, "cuMemPoolSetAttribute", (void*, int, void*))       \
                          function(pool_trim, "cuMemPoolTrimTo", (void*, std::size_t))                 \
                              function(pool_allocate, "cuMemAllocFromPoolAsync",                       \
                                       (std::uintptr_t*, std::size_t, void*, void*))                   \
                                  function(memory_free, "cuMemFreeAsync", (std::uintptr_t, void*))     \
                                      function(event_create, "cuEventCreate", (void**, unsigned))      \
                                          function(stream_synchronize, "cuStreamSynchronize", (void*)) \
                                              function(event_record, "cuEventRecord", (void*, void*))  \
                                                  function(event_query, "cuEventQuery", (void*))       \
                                                      function(event_elapsed, "cuEventElapsedTime",    \
                                                               (float*, void*, void*))
// clang-format on

// The functions; null if the driver lacks one.
struct Driver {
#define KINTSUGI_CUBLAS_MEMBER(name, symbol, parameters) int(*name) parameters = nullptr;
  KINTSUGI_CUBLAS_DRIVER(KINTSUGI_CUBLAS_MEMBER)
#undef KINTSUGI_CUBLAS_MEMBER
};

// Finds the functions in the driver. The driver is loaded already, since the caller has a handle of cuBLAS.
Driver find_driver() {
  Driver driver;
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return driver;
#define KINTSUGI_CUBLAS_LOOK_UP(name, symbol, parameters) \
  driver.name = reinterpret_cast<int(*) parameters>(::dlsym(library, symbol));
  KINTSUGI_CUBLAS_DRIVER(KINTSUGI_CUBLAS_LOOK_UP)
#undef KINTSUGI_CUBLAS_LOOK_UP
  return driver;
}

constinit drop_in::MadeOnce<Driver> driver_once(find_driver);

}  // namespace

std::optional<int> current_device() {
  const Driver& driver = driver_once.get();
  int device = 0;
  if (driver.context_device == nullptr || driver.context_device(&device) != 0) return std::nullopt;
  return device;
}

std::int64_t memory_bytes(int device) {
  const Driver& driver = driver_once.get();
  std::size_t bytes = 0;
  if (driver.device_total_memory == nullptr || driver.device_total_memory(&bytes, device) != 0) return 0;
  return static_cast<std::int64_t>(bytes);
}

bool is_captured(void* stream) {
  const Driver& driver = driver_once.get();
  int status = 0;
  return driver.is_capturing != nullptr && (driver.is_capturing(stream, &status) != 0 || status != 0);
}

void* make_pool(int device, std::int64_t kept_bytes) {
  const Driver& driver = driver_once.get();
  PoolProperties properties;
  properties.location = device;
  void* pool = nullptr;
  const bool is_made = driver.pool_create != nullptr && driver.pool_set_attribute != nullptr &&
                       driver.pool_allocate != nullptr && driver.memory_free != nullptr &&
                       driver.pool_trim != nullptr && driver.pool_create(&pool, &properties) == 0;
  if (!is_made) return nullptr;
  auto threshold = static_cast<std::uint64_t>(kept_bytes);
  driver.pool_set_attribute(pool, release_threshold, &threshold);
  return pool;
}

void* allocate_from(void* pool, std::size_t bytes, void* stream) {
  std::uintptr_t memory = 0;
  return driver_once.get().pool_allocate(&memory, bytes, pool, stream) == 0 ? reinterpret_cast<void*>(memory)
                                                                            : nullptr;
}

void free_in_stream(void* memory, void* stream) {
  driver_once.get().memory_free(reinterpret_cast<std::uintptr_t>(memory), stream);
}

void trim(void* pool) { driver_once.get().pool_trim(pool, 0); }

void* make_event() {
  const Driver& driver = driver_once.get();
  void* event = nullptr;
  const bool has_events = driver.event_create != nullptr && driver.event_record != nullptr &&
                          driver.event_query != nullptr && driver.event_elapsed != nullptr;
  return has_events && driver.event_create(&event, 0) == 0 ? event : nullptr;
}

bool record_event(void* event, void* stream) { return driver_once.get().event_record(event, stream) == 0; }

std::optional<double> seconds_between(void* first, void* second) {
  const Driver& driver = driver_once.get();
  float milliseconds = 0;
  if (driver.event_query(second) != 0 || driver.event_elapsed(&milliseconds, first, second) != 0)
    return std::nullopt;
  return static_cast<double>(milliseconds) * 1e-3;
}

bool set_to_zero(void* memory, std::size_t bytes, void* stream) {
  const Driver& driver = driver_once.get();
  return driver.set_bytes != nullptr &&
         driver.set_bytes(reinterpret_cast<std::uintptr_t>(memory), 0, bytes, stream) == 0;
}

namespace {

bool copy_rows(const DeviceRows& rows, const Copy2d::Side& target, void* stream) {
  const Driver& driver = driver_once.get();
  if (driver.copy_2d == nullptr) return false;
  Copy2d copy;
  copy.source.device = reinterpret_cast<std::uintptr_t>(rows.first);
  copy.source.pitch = rows.pitch;
  copy.target = target;
  copy.target.pitch = rows.bytes;
  copy.width_bytes = rows.bytes;
  copy.height = rows.count;
  return driver.copy_2d(&copy, stream) == 0;
}

}  // namespace

bool copy_on_device(const DeviceRows& rows, void* target, void* stream) {
  Copy2d::Side side;
  side.device = reinterpret_cast<std::uintptr_t>(target);
  return copy_rows(rows, side, stream);
}

bool copy_to_host(const DeviceRows& rows, void* target, void* stream) {
  Copy2d::Side side;
  side.memory_type = Copy2d::host_memory;
  side.host = target;
  return copy_rows(rows, side, stream);
}

bool synchronize(void* stream) {
  const Driver& driver = driver_once.get();
  return driver.stream_synchronize != nullptr && driver.stream_synchronize(stream) == 0;
}

bool fill_rows(const void* row, const DeviceRows& rows, void* stream) {
  const Driver& driver = driver_once.get();
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

}  // namespace kintsugi::cublas
