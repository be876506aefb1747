#include "driver.hpp"

#include <dlfcn.h>

#include <cstddef>

#include "common/lock.hpp"

namespace kintsugi::cublas {

namespace {

struct Driver {
  int (*context_device)(int*) = nullptr;                    // cuCtxGetDevice
  int (*device_total_memory)(std::size_t*, int) = nullptr;  // cuDeviceTotalMem_v2
};

// A handle of cuBLAS exists, so the driver is loaded.
Driver find_driver() {
  Driver driver;
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return driver;
  driver.context_device = reinterpret_cast<int (*)(int*)>(::dlsym(library, "cuCtxGetDevice"));
  driver.device_total_memory =
      reinterpret_cast<int (*)(std::size_t*, int)>(::dlsym(library, "cuDeviceTotalMem_v2"));
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

}  // namespace kintsugi::cublas
