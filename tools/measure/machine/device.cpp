#include "tools/measure/machine/device.hpp"

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

}  // namespace kintsugi::measure
