// Device memory for the library's workspaces, from torch's allocator.
#pragma once

#include "state.hpp"

namespace kintsugi_python {

// Returns a tensor of at least `bytes` bytes; sets `address` to the first address in it that is a multiple of
// `alignment`, a power of two.
Ref aligned_bytes(const Torch& torch, int device, size_t bytes, size_t alignment, uintptr_t& address);

// Puts the callbacks for the device into the options. False, maybe without a Python error, if that is
// impossible: the device's number is too large.
bool use_torchs_memory(State& state, int device, kintsugi_options& options);

// Keeps the Python errors of this thread's allocations during its lifetime, so that they are not raised: the
// library tries smaller blocks before it gives up.
class AllocationErrors {
 public:
  AllocationErrors() : outer_(current) { current = this; }
  ~AllocationErrors() { current = outer_; }
  AllocationErrors(const AllocationErrors&) = delete;
  AllocationErrors& operator=(const AllocationErrors&) = delete;

  static void keep_current_error();
  Ref take_last() { return std::move(last_); }

 private:
  static thread_local AllocationErrors* current;
  AllocationErrors* outer_;
  Ref last_;
};

}  // namespace kintsugi_python
