// Device memory for the library, from torch's allocator or from a function of Python.
#pragma once

#include <memory>

#include "state.hpp"

namespace kintsugi_python {

// Returns a tensor that contains `bytes` bytes at an address that is a multiple of `alignment`. Sets
// `address` to this address. Returns an empty Ref, with a Python error, if torch has no memory.
Ref aligned_bytes(const Torch& torch, int device, size_t bytes, size_t alignment, uintptr_t& address);

// Returns a tensor of an earlier call with at least `bytes` bytes, to which no other call writes; an empty
// Ref if there is none. Sets `address` as aligned_bytes() does. Only memory of the null stream is used again,
// since the null stream is never destroyed. Any other stream might be a new stream at the address of a
// destroyed one.
Ref take_spare(DeviceMemory& memory, bool uses_null_stream, size_t bytes, size_t alignment,
               uintptr_t& address);

// Keeps the memory of a call for the next call, unless it is large, or smaller than the memory that is kept
// already. The call's work must be in the stream.
void keep_spare(DeviceMemory& memory, bool uses_null_stream, Ref tensor, uintptr_t address, size_t bytes);

// Returns the object for torch's memory of a device. Returns nullptr if the device's number is too large.
// Returns nullptr with a Python error if there is no memory.
DeviceMemory* memory_of(State& state, int device);

// Returns a new object for the memory that a function gives; see DeviceMemory. Returns null with a Python
// error.
std::shared_ptr<DeviceMemory> memory_from(State& state, PyObject* allocate);

// Puts the allocator callbacks into the options. They are called as long as the library has memory of the
// object.
void use_memory(DeviceMemory& memory, kintsugi_options& options);

// Tells the allocator callbacks about the call that this thread makes during the object's lifetime, and keeps
// the Python errors of its allocations. The errors are not raised at once, since the library tries smaller
// blocks of C before it gives up.
class AllocatingCall {
 public:
  explicit AllocatingCall(bool uses_null_stream) : uses_null_stream_(uses_null_stream), outer_(current) {
    current = this;
  }
  ~AllocatingCall() { current = outer_; }
  AllocatingCall(const AllocatingCall&) = delete;
  AllocatingCall& operator=(const AllocatingCall&) = delete;

  static bool uses_null_stream() { return current != nullptr && current->uses_null_stream_; }
  // Moves the current Python error to the innermost object of this thread, as its last error.
  static void keep_current_error();
  Ref take_last_error() { return std::move(last_error_); }

 private:
  static thread_local AllocatingCall* current;
  bool uses_null_stream_;
  AllocatingCall* outer_;
  Ref last_error_;
};

}  // namespace kintsugi_python
