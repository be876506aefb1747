// Device memory of emulated products, from a pool of the drop-in's own. The pool keeps what calls have freed,
// up to the workspace limit, since mapping memory again after each synchronization takes longer than many
// products; it is given back when the program destroys a handle of cuBLAS.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kintsugi::cublas {

// Most bytes of device memory that a call on the device takes: the setting, else a default.
std::int64_t workspace_limit(int device);

// Memory for the work that is enqueued in the stream while the object exists.
class Workspace {
 public:
  // Without memory where `bytes` is 0 or none is to be had.
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
