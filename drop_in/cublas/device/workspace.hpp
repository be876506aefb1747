// Device memory of emulated products, from a pool of the drop-in's own. The pool keeps the memory that calls
// have freed, up to the workspace limit, since mapping memory again after each synchronization takes longer
// than many products. When the program destroys a handle of cuBLAS, the pool gives that memory back.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kintsugi::cublas {

// Returns the most bytes of device memory that a call on the device takes: the setting, else a default.
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

// Gives memory back that no enqueued work uses.
void give_back_workspaces();

}  // namespace kintsugi::cublas
