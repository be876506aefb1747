// Devices as the library uses them: contexts, to which memory, streams and handles belong, memory in the
// order of a queue, and descriptions for messages. Functions without a device's number work in the calling
// thread's context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/cuda/cuda_driver.hpp"
#include "base/queue.hpp"

namespace kintsugi::core {

// A context as objects of the library store it. The id tells it from a later context, which may have the
// address of a destroyed one.
struct DeviceContext {
  void* handle = nullptr;  // a CUcontext; nullptr: none
  std::uint64_t id = 0;
  int device = 0;  // number of its device

  friend bool operator==(const DeviceContext&, const DeviceContext&) = default;
};

}  // namespace kintsugi::core

namespace kintsugi::core::cuda {

// Returns the calling thread's context; a thread without one gets the first device's primary context.
DeviceContext current_context();
// Returns the primary context of a device, which exists from then on.
DeviceContext primary_context(int device);
// Makes a context the calling thread's current one until leave_context(). Returns false if the context is
// destroyed; then leave_context() must not be called.
bool enter_context(const DeviceContext& context) noexcept;
void leave_context() noexcept;
// Makes a context current, until leave_context(), in which memory of a device can be used: `owner`, the
// context of the memory, or the device's primary context if that is nullptr. Returns false and changes
// nothing if the current context can use it already; then leave_context() must not be called.
bool enter_for_memory(int device, void* owner);
// True if work in the calling thread's context may use memory of the given context: the two are the same, or
// they are green contexts that are parts of the same context.
bool reaches(const DeviceContext& context);
// Throws invalid_argument if the stream belongs to another context than the calling thread's.
void check_stream(const Queue& queue);
// True if work for the queue is captured into a graph, or if a capture forbids such work. The null stream
// waits for all blocking streams of its context, so it must not be used while one of them is captured.
inline bool is_captured(const Queue& queue) { return may_be_captured(queue.stream); }

// Makes a context current during its lifetime.
class ContextScope {
 public:
  explicit ContextScope(const DeviceContext& context) : entered_(enter_context(context)) {}
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope() {
    if (entered_) leave_context();
  }

  bool entered() const { return entered_; }  // false: the context is destroyed

 private:
  bool entered_;
};

struct DeviceDescription {
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;

  std::string text() const;  // "NVIDIA X, compute capability 9.0"
};
DeviceDescription describe_device(Device device);
// Returns a description of the device with this number: "device 1 (NVIDIA X, compute capability 9.0)".
std::string text_of_device(int number);

// Memory. No function waits for the device unless its comment says so.

// Creates everything that later calls need but cannot create while a stream is captured: the context, the
// cuBLAS handle and the memory pool.
void prepare_device();
// Returns nullptr if there is not enough memory. If work for the queue is captured, the memory stays the
// captured graph's, and the graphs of the device have at most `graph_limit` bytes together (0: no limit).
std::byte* allocate(const Queue& queue, std::size_t bytes, std::size_t graph_limit);
void deallocate(const Queue& queue, void* pointer) noexcept;
// Frees memory that was deallocated but kept for later calls.
void release_kept_memory() noexcept;
std::size_t free_memory();  // bytes of the device
void copy_to_device(const Queue& queue, void* target, const void* host, std::size_t bytes);
void copy_to_host(const Queue& queue, void* host, const void* source, std::size_t bytes);
void copy_on_device(const Queue& queue, void* target, const void* source, std::size_t bytes);
// Sets bytes to zero. A few bytes are set by a kernel that may overlap others, more bytes by cuMemsetD8Async.
void clear(const Queue& queue, void* target, std::size_t bytes);
// Waits for the queue, or for all queues of the device. synchronize_quietly() ignores errors.
void synchronize(const Queue& queue);
void synchronize();
void synchronize_quietly() noexcept;

}  // namespace kintsugi::core::cuda
