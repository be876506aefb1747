#include "tools/measure/machine/device.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

namespace kintsugi::measure {

namespace {

using namespace core::cuda;

int attribute(Device device, int number) {
  int value = 0;
  check(driver().device_attribute(&value, number, device), "cuDeviceGetAttribute");
  return value;
}

// Values of NVML's reference: 0 is success; the numbers are of nvmlClockType_t.
constexpr int sm_clock = 1;
constexpr int memory_clock = 2;

struct ManagementLibrary {
  int (*init)() = nullptr;
  int (*device)(const char*, void**) = nullptr;
  int (*power)(void*, unsigned*) = nullptr;        // milliwatts
  int (*power_limit)(void*, unsigned*) = nullptr;  // milliwatts
  int (*clock)(void*, int, unsigned*) = nullptr;   // MHz
  int (*largest_clock)(void*, int, unsigned*) = nullptr;
  bool usable = false;
};

template <class Function>
bool find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

// Opens the library, which stays open and initialized until the program ends.
ManagementLibrary open_library() {
  ManagementLibrary found;
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  found.usable = library != nullptr && find(library, found.init, "nvmlInit_v2") &&
                 find(library, found.device, "nvmlDeviceGetHandleByPciBusId_v2") &&
                 find(library, found.power, "nvmlDeviceGetPowerUsage") &&
                 find(library, found.power_limit, "nvmlDeviceGetEnforcedPowerLimit") &&
                 find(library, found.clock, "nvmlDeviceGetClockInfo") &&
                 find(library, found.largest_clock, "nvmlDeviceGetMaxClockInfo") && found.init() == 0;
  return found;
}

const ManagementLibrary& management_library() {
  static const ManagementLibrary library = open_library();
  return library;
}

// Returns the value that `ask` writes, times `unit`.
template <class Ask>
std::optional<double> answer(const void* device, double unit, const Ask& ask) {
  unsigned value = 0;
  if (device == nullptr || ask(&value) != 0) return std::nullopt;
  return unit * value;
}

}  // namespace

std::string device_missing_reason() { return driver().reason; }

DeviceFacts device_facts() {
  ensure_context();
  Device device = 0;
  std::array<char, 256> name{};
  check(driver().context_device(&device), "cuCtxGetDevice");
  check(driver().device_name(name.data(), static_cast<int>(name.size()), device), "cuDeviceGetName");
  DeviceFacts facts;
  facts.name = name.data();
  facts.major = attribute(device, compute_capability_major);
  facts.minor = attribute(device, compute_capability_minor);
  facts.driver_version = driver().version;
  facts.sms = attribute(device, sm_count_attribute);
  facts.l2_bytes = attribute(device, l2_cache_bytes);
  facts.pci_address = fmt::format("{:08x}:{:02x}:{:02x}.0", attribute(device, pci_domain),
                                  attribute(device, pci_bus), attribute(device, pci_device));
  return facts;
}

DeviceMonitor::DeviceMonitor(const std::string& pci_address) {
  const ManagementLibrary& library = management_library();
  if (library.usable && library.device(pci_address.c_str(), &device_) != 0) device_ = nullptr;
}

DeviceLimits DeviceMonitor::limits() const {
  const ManagementLibrary& library = management_library();
  const auto clock = [&](int kind) {
    return answer(device_, 1, [&](unsigned* value) { return library.largest_clock(device_, kind, value); });
  };
  return {answer(device_, 1e-3, [&](unsigned* value) { return library.power_limit(device_, value); }),
          clock(sm_clock), clock(memory_clock)};
}

DeviceState DeviceMonitor::now() const {
  const ManagementLibrary& library = management_library();
  return {answer(device_, 1e-3, [&](unsigned* value) { return library.power(device_, value); }),
          answer(device_, 1, [&](unsigned* value) { return library.clock(device_, sm_clock, value); })};
}

}  // namespace kintsugi::measure
