// Contexts of devices. Memory, streams and handles of the vendor library belong to a context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/queue.hpp"

namespace kintsugi::core {

// A context as objects of the library store it. The id tells it from a later context, which may have the
// address of a destroyed one.
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
  // Makes a context the calling thread's current one until leave(). Returns false if the context is
  // destroyed; then leave() must not be called.
  virtual bool enter(const DeviceContext& context) const noexcept = 0;
  virtual void leave() const noexcept = 0;
  // Makes a context current, until leave(), in which memory of a device can be used: `owner`, the context of
  // the memory, or the device's primary context if that is nullptr. Returns false and changes nothing if the
  // current context can use it already; then leave() must not be called.
  virtual bool enter_for_memory(int device, void* owner) const = 0;
  // True if work in the calling thread's context may use memory of the given context: the two are the same,
  // or they are green contexts that are parts of the same context.
  virtual bool reaches(const DeviceContext& context) const = 0;
  // Throws invalid_argument if the stream belongs to another context than the calling thread's.
  virtual void check_stream(const Queue& queue) const = 0;
  // True if work for the queue is captured into a graph, or if a capture forbids such work.
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

// Copies between pageable host memory and devices, in queues that run at the same time. A comment says for
// each pointer which memory it is in.

using DeviceEvent = void*;

// Lines of equal length, `pitch` bytes apart.
template <class Byte>
struct Lines {
  Byte* first = nullptr;
  std::size_t pitch = 0;
};

// Copies, memory and events. Functions without a device's number work in the calling thread's context.
class DeviceTransfers {
 public:
  virtual ~DeviceTransfers() = default;

  virtual int devices() const = 0;
  // Returns the primary context of a device, which exists from then on.
  virtual DeviceContext primary_context(int device) const = 0;
  virtual std::size_t free_memory() const = 0;  // bytes of the device

  // Allocates page-locked host memory, which all devices copy without the CPU. Returns nullptr if there is
  // none left.
  virtual std::byte* allocate_pinned(std::size_t bytes) const = 0;
  virtual void free_pinned(std::byte* memory) const noexcept = 0;
  // True for host memory that the program itself has page-locked.
  virtual bool is_pinned(const void* host) const = 0;

  virtual Queue create_stream() const = 0;
  virtual void destroy_stream(const Queue& queue) const noexcept = 0;
  // An event is complete when its queue has done all work that it had at the last record().
  virtual DeviceEvent create_event() const = 0;
  virtual void destroy_event(DeviceEvent event) const noexcept = 0;
  virtual void record(const Queue& queue, DeviceEvent event) const = 0;
  virtual void make_wait(const Queue& queue, DeviceEvent event) const = 0;  // the host goes on
  virtual void wait_for(DeviceEvent event) const = 0;                       // the host waits

  // Host memory must be pinned: `source` of copy_lines_to_device(), `target` of copy_lines_to_host().
  virtual void copy_lines_to_device(const Queue& queue, const Lines<std::byte>& target,
                                    const Lines<const std::byte>& source, std::size_t line_bytes,
                                    std::size_t lines) const = 0;
  virtual void copy_lines_to_host(const Queue& queue, const Lines<std::byte>& target,
                                  const Lines<const std::byte>& source, std::size_t line_bytes,
                                  std::size_t lines) const = 0;
};

}  // namespace kintsugi::core
