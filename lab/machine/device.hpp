// A CUDA device for measurements: memory, a stream, events and graphs, through the driver's functions alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/cuda/cuda_driver.hpp"

namespace kintsugi::lab {

struct DeviceFacts {
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;
  int driver_version = 0;  // CUDA 13.0: 13000
  int sms = 0;
  std::int64_t l2_bytes = 0;
  std::string pci_address;  // in the form of the management library
};

// Returns why no device can be used; empty if one can.
std::string device_missing_reason();

// Returns the facts of the device of the thread's context; a thread without a context works on the first
// device from then on, as in the engine.
DeviceFacts device_facts();

// Uninitialized device memory; freed when all work on the device is done.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }
  std::size_t bytes() const { return bytes_; }

 private:
  core::cuda::Address address_ = 0;
  std::size_t bytes_;
};

// A stream, which runs its steps in order; those that touch host memory are complete after synchronize().
class DeviceStream {
 public:
  DeviceStream();
  ~DeviceStream();
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  void* native() const { return stream_; }
  void upload(std::byte* target, const void* host, std::size_t bytes) const;
  void download(void* host, const std::byte* source, std::size_t bytes) const;
  void copy(std::byte* target, const std::byte* source, std::size_t bytes) const;
  void fill(std::byte* target, unsigned char value, std::size_t bytes) const;
  void synchronize() const;

  // Returns the seconds on the device from the start of the first step of `enqueue` to the end of the last
  // one. `meanwhile` is called after all are in the stream, before waiting for them.
  double seconds_of(const std::function<void()>& enqueue, const std::function<void()>& meanwhile = {}) const;

 private:
  core::cuda::Stream stream_ = nullptr;
};

// A graph of the steps that `enqueue` put into the stream, which one call launches again.
class DeviceGraph {
 public:
  DeviceGraph(const DeviceStream& stream, const std::function<void()>& enqueue);
  ~DeviceGraph();
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;

  void launch(const DeviceStream& stream) const;

 private:
  core::cuda::GraphExec graph_ = nullptr;
};

}  // namespace kintsugi::lab
