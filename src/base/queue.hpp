// Queues: where the steps of a call run, one after the other.
#pragma once

#include <cstdint>

namespace kintsugi::core {

enum class QueueKind : std::int32_t { host = 0, cuda = 1 };

// On a host queue a call returns when all work is done. On a CUDA queue a call returns when all steps are
// enqueued in `stream`, a native stream (null: the default stream).
struct Queue {
  QueueKind kind = QueueKind::host;
  void* stream = nullptr;
};

}  // namespace kintsugi::core
