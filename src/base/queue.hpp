// Queues: where the steps of a call run, one after the other.
#pragma once

#include <cstdint>

namespace kintsugi::core {

enum class QueueKind : std::int32_t { host = 0, cuda = 1 };

// On a host queue all work is done when the call returns. On a CUDA queue, whose `stream` is a native stream
// (null: the default stream), the call returns when all steps are enqueued in the stream.
struct Queue {
  QueueKind kind = QueueKind::host;
  void* stream = nullptr;
};

}  // namespace kintsugi::core
