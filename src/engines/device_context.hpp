// Contexts of devices, to which memory, streams and handles of the vendor library belong.
#pragma once

#include <cstdint>
#include <string>

#include "base/queue.hpp"

namespace kintsugi::core {

// A context as stored in objects of the library. A later context may have the address of a destroyed one, but
// never its id.
struct DeviceContext {
  void* handle = nullptr;  // CUDA: a CUcontext; nullptr: none
  std::uint64_t id = 0;
  int device = 0;  // number of its device

  friend bool operator==(const DeviceContext&, const DeviceContext&) = default;
};

class DeviceContexts {
 public:
  virtual ~DeviceContexts() = default;

  // Returns the calling thread's context; a thread without one gets the first device's primary context.
  virtual DeviceContext current() const = 0;
  // Makes a context the calling thread's until leave(). False: it is destroyed, and leave() must not be
  // called.
  virtual bool enter(const DeviceContext& context) const noexcept = 0;
  virtual void leave() const noexcept = 0;
  // True if work of the calling thread's context may use memory of the given context: the two are the same,
  // or green contexts that are parts of the same context.
  virtual bool reaches(const DeviceContext& context) const = 0;
  // Fails with invalid_argument if the stream belongs to another context than the calling thread's.
  virtual void check_stream(const Queue& queue) const = 0;
  // True if work for the queue is captured into a graph, or would break such a capture.
  virtual bool is_captured(const Queue& queue) const = 0;
  // Returns a description: "device 1 (NVIDIA H200, compute capability 9.0)".
  virtual std::string describe(int device) const = 0;
};

// Makes a context current during its lifetime.
class ContextScope {
 public:
  ContextScope(const DeviceContexts& contexts, const DeviceContext& context)
      : contexts_(contexts), entered_(contexts.enter(context)) {}
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope() {
    if (entered_) contexts_.leave();
  }

  bool entered() const { return entered_; }  // false: the context is destroyed

 private:
  const DeviceContexts& contexts_;
  bool entered_;
};

}  // namespace kintsugi::core
