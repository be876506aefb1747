// Device memory for the library's workspaces, from torch's allocator.
#pragma once

#include "state.hpp"

namespace kintsugi_python {

// Returns a tensor with at least `bytes` bytes from the first address in it that is a multiple of
// `alignment`, and sets `address` to that. Returns an empty Ref, with a Python error, if torch has no memory.
Ref aligned_bytes(const Torch& torch, int device, size_t bytes, size_t alignment, uintptr_t& address);

// Puts the allocator callbacks for the device into the options. Returns false if the device's number is too
// large, or, with a Python error, if there is no memory.
bool use_torchs_memory(State& state, int device, kintsugi_options& options);

// During its lifetime keeps the Python errors of this thread's allocations, which are not raised: the library
// tries smaller blocks of C before it gives up.
class AllocationErrors {
 public:
  AllocationErrors() : outer_(current) { current = this; }
  ~AllocationErrors() { current = outer_; }
  AllocationErrors(const AllocationErrors&) = delete;
  AllocationErrors& operator=(const AllocationErrors&) = delete;

  // Takes the current Python error as the last one of the innermost object of this thread.
  static void keep_current_error();
  Ref take_last() { return std::move(last_); }

 private:
  static thread_local AllocationErrors* current;
  AllocationErrors* outer_;
  Ref last_;
};

}  // namespace kintsugi_python
