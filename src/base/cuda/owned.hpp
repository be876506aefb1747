// Device memory, streams and graphs as objects that own them, for measurements.
#pragma once

#include <cstddef>
#include <functional>

#include "base/cuda/cuda_driver.hpp"

namespace kintsugi::core::cuda {

// Uninitialized device memory; freed when all work on the device is done.
class OwnedMemory {
 public:
  explicit OwnedMemory(std::size_t bytes);
  ~OwnedMemory();
  OwnedMemory(const OwnedMemory&) = delete;
  OwnedMemory& operator=(const OwnedMemory&) = delete;

  std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }
  std::size_t bytes() const { return bytes_; }

 private:
  Address address_ = 0;
  std::size_t bytes_;
};

// A stream. It runs its steps in order; steps that touch host memory are complete after synchronize().
class OwnedStream {
 public:
  OwnedStream();
  ~OwnedStream();
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;

  void* native() const { return stream_; }
  void upload(std::byte* target, const void* host, std::size_t bytes) const;
  void download(void* host, const std::byte* source, std::size_t bytes) const;
  void copy(std::byte* target, const std::byte* source, std::size_t bytes) const;
  void fill(std::byte* target, unsigned char value, std::size_t bytes) const;
  void synchronize() const;

  // Returns the seconds on the device from the start of the first step of `enqueue` to the end of the last
  // one. `meanwhile` is called when all steps are in the stream, before the wait for them.
  double seconds_of(const std::function<void()>& enqueue, const std::function<void()>& meanwhile = {}) const;

 private:
  Stream stream_ = nullptr;
};

// A graph of the steps that `enqueue` puts into the stream. launch() enqueues all of them again.
class OwnedGraph {
 public:
  OwnedGraph(const OwnedStream& stream, const std::function<void()>& enqueue);
  ~OwnedGraph();
  OwnedGraph(const OwnedGraph&) = delete;
  OwnedGraph& operator=(const OwnedGraph&) = delete;

  void launch(const OwnedStream& stream) const;

 private:
  GraphExec graph_ = nullptr;
};

}  // namespace kintsugi::core::cuda
