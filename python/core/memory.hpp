// Device memory for the library's workspaces, from torch's allocator.
#pragma once

#include "state.hpp"

namespace kintsugi_python {

// Returns a tensor of at least `bytes` bytes; sets `address` to the first address in it that is a multiple of
// `alignment`, a power of two.
Ref aligned_bytes(const Torch& torch, int device, size_t bytes, size_t alignment, uintptr_t& address);

// Returns a tensor of an earlier call for at least `bytes` bytes, to which no other call writes, or nothing.
// `address` is set as by aligned_bytes(). Memory of the null stream alone is reused, which exists as long as
// its device does; a later stream might have the address of a destroyed one.
Ref take_spare(DeviceMemory& memory, bool uses_null_stream, size_t bytes, size_t alignment,
               uintptr_t& address);

// Keeps the memory of a call, whose work is in the stream, for the next one, unless it is large, or smaller
// than what is kept already.
void keep_spare(DeviceMemory& memory, bool uses_null_stream, Ref tensor, uintptr_t address, size_t bytes);

// Returns what is held for a device; nullptr, maybe without a Python error, if the device's number is too
// large.
DeviceMemory* memory_of(State& state, int device);

// Puts the callbacks for the device into the options. False, maybe without a Python error, if that is
// impossible: the device's number is too large.
bool use_torchs_memory(State& state, int device, kintsugi_options& options);

// What the callbacks have to know of the call that this thread makes during the object's lifetime, and the
// Python errors of its allocations, which are not raised: the library tries smaller blocks before it gives up.
class AllocatingCall {
 public:
  explicit AllocatingCall(bool uses_null_stream) : uses_null_stream_(uses_null_stream), outer_(current) {
    current = this;
  }
  ~AllocatingCall() { current = outer_; }
  AllocatingCall(const AllocatingCall&) = delete;
  AllocatingCall& operator=(const AllocatingCall&) = delete;

  static bool uses_null_stream() { return current != nullptr && current->uses_null_stream_; }
  static void keep_current_error();
  Ref take_last_error() { return std::move(last_error_); }

 private:
  static thread_local AllocatingCall* current;
  bool uses_null_stream_;
  AllocatingCall* outer_;
  Ref last_error_;
};

}  // namespace kintsugi_python
