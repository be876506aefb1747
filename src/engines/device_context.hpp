// Contexts of devices: what memory, streams and the vendor's handles belong to.
#pragma once

#include <cstdint>
#include <string>

#include "base/queue.hpp"

namespace kintsugi::core {

// A context as objects of the library keep it. A later context may have the address of one that is gone,
// never its id.
struct DeviceContext {
  void* handle = nullptr;  // of CUDA a CUcontext; nullptr: none
  std::uint64_t id = 0;
  int device = 0;  // its device's number

  friend bool operator==(const DeviceContext&, const DeviceContext&) = default;
};

class DeviceContexts {
 public:
  virtual ~DeviceContexts() = default;

  // The calling thread's context; a thread that has none gets the first device's primary one.
  virtual DeviceContext current() const = 0;
  // Makes a context the calling thread's until leave(); false: it is gone, and there is nothing to leave.
  virtual bool enter(const DeviceContext& context) const noexcept = 0;
  virtual void leave() const noexcept = 0;
  // Whether work of the calling thread's context may use memory of that one: they are the same, or parts of
  // the same.
  virtual bool reaches(const DeviceContext& context) const = 0;
  // Fails with invalid_argument where the stream belongs to another context than the calling thread's.
  virtual void check_stream(const Queue& queue) const = 0;
  // Whether work for the queue is noted as a graph, or would disturb such a capture.
  virtual bool is_captured(const Queue& queue) const = 0;
  // "device 1 (NVIDIA H200, compute capability 9.0)"
  virtual std::string describe(int device) const = 0;
};

// Makes a context current while it lives.
class ContextScope {
 public:
  ContextScope(const DeviceContexts& contexts, const DeviceContext& context)
      : contexts_(contexts), entered_(contexts.enter(context)) {}
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope() {
    if (entered_) contexts_.leave();
  }

  bool entered() const { return entered_; }  // false: the context is gone

 private:
  const DeviceContexts& contexts_;
  bool entered_;
};

}  // namespace kintsugi::core
