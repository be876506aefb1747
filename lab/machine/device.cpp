#include "lab/machine/device.hpp"

#include <fmt/format.h>

#include <array>

namespace kintsugi::lab {

namespace {

using namespace core::cuda;

Address address(const std::byte* pointer) { return reinterpret_cast<Address>(pointer); }

int attribute(Device device, int number) {
  int value = 0;
  check(driver().device_attribute(&value, number, device), "cuDeviceGetAttribute");
  return value;
}

class DeviceEvent {
 public:
  DeviceEvent() { check(driver().event_create(&event_, 0), "cuEventCreate"); }
  ~DeviceEvent() { driver().event_destroy(event_); }
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;

  void record(Stream stream) const { check(driver().event_record(event_, stream), "cuEventRecord"); }
  double seconds_since(const DeviceEvent& start) const {
    float milliseconds = 0;
    check(driver().event_synchronize(event_), "cuEventSynchronize");
    check(driver().event_elapsed(&milliseconds, start.event_, event_), "cuEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  Event event_ = nullptr;
};

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

DeviceMemory::DeviceMemory(std::size_t bytes) : bytes_(bytes) {
  ensure_context();
  if (bytes > 0) check(driver().memory_allocate(&address_, bytes), "cuMemAlloc");
}

DeviceMemory::~DeviceMemory() {
  if (address_ != 0) driver().memory_free(address_);
}

DeviceStream::DeviceStream() {
  constexpr unsigned non_blocking = 1;
  ensure_context();
  check(driver().stream_create(&stream_, non_blocking), "cuStreamCreate");
}

DeviceStream::~DeviceStream() { driver().stream_destroy(stream_); }

void DeviceStream::upload(std::byte* target, const void* host, std::size_t bytes) const {
  check(driver().copy_to_device_async(address(target), host, bytes, stream_), "cuMemcpyHtoDAsync");
}

void DeviceStream::download(void* host, const std::byte* source, std::size_t bytes) const {
  check(driver().copy_to_host_async(host, address(source), bytes, stream_), "cuMemcpyDtoHAsync");
}

void DeviceStream::copy(std::byte* target, const std::byte* source, std::size_t bytes) const {
  check(driver().copy_on_device_async(address(target), address(source), bytes, stream_), "cuMemcpyDtoDAsync");
}

void DeviceStream::fill(std::byte* target, unsigned char value, std::size_t bytes) const {
  check(driver().set_bytes_async(address(target), value, bytes, stream_), "cuMemsetD8Async");
}

void DeviceStream::synchronize() const { check(driver().stream_synchronize(stream_), "cuStreamSynchronize"); }

double DeviceStream::seconds_of(const std::function<void()>& enqueue,
                                const std::function<void()>& meanwhile) const {
  const DeviceEvent start;
  const DeviceEvent end;
  start.record(stream_);
  enqueue();
  end.record(stream_);
  if (meanwhile) meanwhile();
  return end.seconds_since(start);
}

DeviceGraph::DeviceGraph(const DeviceStream& stream, const std::function<void()>& enqueue) {
  constexpr int of_this_thread = 1;
  Graph captured = nullptr;
  check(driver().stream_begin_capture(stream.native(), of_this_thread), "cuStreamBeginCapture");
  try {
    enqueue();
  } catch (...) {  // a stream left in capture accepts no other work
    driver().stream_end_capture(stream.native(), &captured);
    if (captured != nullptr) driver().graph_destroy(captured);
    throw;
  }
  check(driver().stream_end_capture(stream.native(), &captured), "cuStreamEndCapture");
  const Result result = driver().graph_instantiate(&graph_, captured, 0);
  driver().graph_destroy(captured);
  check(result, "cuGraphInstantiateWithFlags");
}

DeviceGraph::~DeviceGraph() { driver().graph_exec_destroy(graph_); }

void DeviceGraph::launch(const DeviceStream& stream) const {
  check(driver().graph_launch(graph_, stream.native()), "cuGraphLaunch");
}

}  // namespace kintsugi::lab
