// Device memory of emulated products, from a memory pool of the drop-in. The pool keeps freed memory, up to
// the workspace limit, because mapping memory again after each synchronization takes longer than many
// products. When the program destroys a handle of cuBLAS, the pool returns its free memory to the device.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kintsugi::cublas {

// Returns the limit of the workspace of one call on the device, and of those of all captured graphs together:
// the setting, or a default.
std::int64_t workspace_limit(int device);

// Memory for the work that is enqueued in the stream while the object exists.
class Workspace {
 public:
  // Allocates the memory; pointer() is nullptr if `bytes` is 0 or there is not enough memory.
  Workspace(int device, std::size_t bytes, void* stream);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  void* pointer() const { return pointer_; }
  std::size_t bytes() const { return pointer_ != nullptr ? bytes_ : 0; }

 private:
  void* pointer_ = nullptr;
  std::size_t bytes_;
  void* stream_;
};

// Returns the free memory of all pools to their devices.
void give_back_workspaces();

}  // namespace kintsugi::cublas
