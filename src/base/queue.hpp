// Where work is put: the calling thread, or a device's stream.
#pragma once

#include <cstdint>

namespace kintsugi::core {

enum class QueueKind : std::int32_t { host = 0, cuda = 1 };

struct Queue {
  QueueKind kind = QueueKind::host;
  void* stream = nullptr;
};

}  // namespace kintsugi::core
