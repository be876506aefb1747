#include "cuda_probe.hpp"

#include <dlfcn.h>

#include <array>

namespace kintsugi::tools {

namespace {

// From the CUDA driver API's reference: CUresult 0 is success, and these two attributes of a device.
constexpr int success = 0;
constexpr int compute_capability_major = 75;
constexpr int compute_capability_minor = 76;

// The driver's functions, without its headers: the program builds without a toolkit.
struct Driver {
  void* library = nullptr;
  int (*init)(unsigned) = nullptr;
  int (*driver_version)(int*) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device)(int*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*device_attribute)(int*, int, int) = nullptr;
  int (*error_name)(int, const char**) = nullptr;

  template <class Function>
  bool find(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
  }
  bool complete() {
    return find(init, "cuInit") && find(driver_version, "cuDriverGetVersion") &&
           find(device_count, "cuDeviceGetCount") && find(device, "cuDeviceGet") &&
           find(device_name, "cuDeviceGetName") && find(device_attribute, "cuDeviceGetAttribute") &&
           find(error_name, "cuGetErrorName");
  }
  std::string name_of(int result) const {
    const char* name = nullptr;
    if (error_name(result, &name) != success || name == nullptr) return "error " + std::to_string(result);
    return name;
  }
};

CudaDevice ask_device(const Driver& driver, int index) {
  CudaDevice result;
  int device = 0;
  std::array<char, 256> name{};
  if (driver.device(&device, index) != success) return result;
  if (driver.device_name(name.data(), static_cast<int>(name.size()), device) == success)
    result.name = name.data();
  driver.device_attribute(&result.major, compute_capability_major, device);
  driver.device_attribute(&result.minor, compute_capability_minor, device);
  return result;
}

void ask_devices(const Driver& driver, CudaProbe& probe) {
  driver.driver_version(&probe.driver_version);  // needs no cuInit
  if (const int result = driver.init(0); result != success) {
    probe.device_error = "cuInit: " + driver.name_of(result);
    return;
  }
  int count = 0;
  if (const int result = driver.device_count(&count); result != success) {
    probe.device_error = "cuDeviceGetCount: " + driver.name_of(result);
    return;
  }
  for (int i = 0; i < count; ++i) probe.devices.push_back(ask_device(driver, i));
  if (count == 0) probe.device_error = "the driver counts no device";
}

}  // namespace

// The library stays open: the driver does not stand being unloaded.
CudaProbe probe_cuda() {
  CudaProbe probe;
  Driver driver;
  driver.library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver.library == nullptr) {
    const char* error = ::dlerror();
    probe.driver_error = error != nullptr ? error : "libcuda.so.1 cannot be opened";
    return probe;
  }
  if (!driver.complete()) {
    probe.driver_error = "libcuda.so.1 lacks functions of the driver API";
    return probe;
  }
  probe.driver = true;
  ask_devices(driver, probe);
  return probe;
}

}  // namespace kintsugi::tools
