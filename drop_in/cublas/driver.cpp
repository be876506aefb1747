#include "driver.hpp"

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
  static constexpr int device_memory = 2;  // CU_MEMORYTYPE_DEVICE

  Side source, target;
  std::size_t width_bytes = 0, height = 0;
};
static_assert(sizeof(Copy2d) == 128);

struct Driver {
  int (*context_device)(int*) = nullptr;                    // cuCtxGetDevice
  int (*device_total_memory)(std::size_t*, int) = nullptr;  // cuDeviceTotalMem_v2
  int (*is_capturing)(void*, int*) = nullptr;               // cuStreamIsCapturing
  int (*copy_2d)(const Copy2d*, void*) = nullptr;           // cuMemcpy2DAsync_v2
};

// A handle of cuBLAS exists, so the driver is loaded.
Driver find_driver() {
  Driver driver;
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return driver;
  driver.context_device = reinterpret_cast<int (*)(int*)>(::dlsym(library, "cuCtxGetDevice"));
  driver.device_total_memory =
      reinterpret_cast<int (*)(std::size_t*, int)>(::dlsym(library, "cuDeviceTotalMem_v2"));
  driver.is_capturing = reinterpret_cast<int (*)(void*, int*)>(::dlsym(library, "cuStreamIsCapturing"));
  driver.copy_2d = reinterpret_cast<int (*)(const Copy2d*, void*)>(::dlsym(library, "cuMemcpy2DAsync_v2"));
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

bool fill_rows(const void* row, const DeviceRows& rows, void* stream) {
  const Driver& driver = driver_once.get();
  if (driver.copy_2d == nullptr) return false;
  const auto first = reinterpret_cast<std::uintptr_t>(rows.first);
  Copy2d copy;
  copy.source.device = reinterpret_cast<std::uintptr_t>(row);
  copy.source.pitch = copy.target.pitch = rows.pitch;
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
