// Where the steps of a call run, one after the other.
#pragma once

#include <cstdint>

namespace kintsugi::core {

enum class QueueKind : std::int32_t { host = 0, cuda = 1 };

// A host queue has done its work when the call returns; of a CUDA queue, `stream` is a native stream (null:
// the default one), and the call returns when all steps are in it.
struct Queue {
  QueueKind kind = QueueKind::host;
  void* stream = nullptr;
};

}  // namespace kintsugi::core
