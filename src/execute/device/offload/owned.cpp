#include "execute/device/offload/owned.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "base/threads.hpp"

namespace kintsugi::core {

namespace {

struct SpareQueue {
  const DeviceTransfers* transfers;
  const DeviceContexts* contexts;
  DeviceContext context;
  Queue queue;
};

struct SpareQueues {
  std::mutex mutex;
  std::vector<SpareQueue> queues;
};

// Never destroyed, since a call may be made after static objects were destroyed.
SpareQueues& spare_queues() {
  static auto* instance = new SpareQueues;
  return *instance;
}

}  // namespace

OwnedQueue::OwnedQueue(const DeviceTransfers& transfers, const DeviceContexts& contexts)
    : transfers_(transfers), contexts_(contexts), context_(contexts.current()) {
  {
    SpareQueues& spare = spare_queues();
    const std::lock_guard lock(spare.mutex);
    const auto found = std::ranges::find(spare.queues, context_, &SpareQueue::context);
    if (found != spare.queues.end()) {
      queue_ = found->queue;
      spare.queues.erase(found);
      return;
    }
  }
  queue_ = transfers.create_stream();
}

OwnedQueue::~OwnedQueue() {
  try {
    SpareQueues& spare = spare_queues();
    const std::lock_guard lock(spare.mutex);
    spare.queues.push_back({&transfers_, &contexts_, context_, queue_});
  } catch (...) {  // No memory for the list: the stream is lost.
    transfers_.destroy_stream(queue_);
  }
}

// Does nothing in a forked child: the mutex may be locked forever, and the driver cannot be used.
void release_spare_queues() noexcept {
  if (fork_depth() > 0) return;
  SpareQueues& spare = spare_queues();
  const std::lock_guard lock(spare.mutex);
  for (const SpareQueue& queue : spare.queues) {
    const ContextScope scope(*queue.contexts, queue.context);
    if (scope.entered()) queue.transfers->destroy_stream(queue.queue);  // else it ended with its context
  }
  spare.queues.clear();
}

namespace {

struct SpareChunks {
  std::mutex mutex;
  std::vector<std::byte*> chunks;
  const DeviceTransfers* transfers =
      nullptr;  // the same for all chunks, since there is one engine with devices
};

// Never destroyed, since a call may be made after static objects were destroyed.
SpareChunks& spare_chunks() {
  static auto* instance = new SpareChunks;
  return *instance;
}

std::byte* take_spare_chunk() {
  SpareChunks& spare = spare_chunks();
  const std::lock_guard lock(spare.mutex);
  if (spare.chunks.empty()) return nullptr;
  std::byte* chunk = spare.chunks.back();
  spare.chunks.pop_back();
  return chunk;
}

}  // namespace

PinnedChunk::PinnedChunk(const DeviceTransfers& transfers) : memory_(take_spare_chunk()) {
  if (memory_ != nullptr) return;
  memory_ = transfers.allocate_pinned(bytes);
  if (memory_ == nullptr) fail(Status::out_of_memory, "the host has no {} bytes of pinned memory", bytes);
  const std::lock_guard lock(spare_chunks().mutex);
  spare_chunks().transfers = &transfers;
}

PinnedChunk::PinnedChunk(PinnedChunk&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}

PinnedChunk::~PinnedChunk() {
  if (memory_ == nullptr) return;
  try {
    const std::lock_guard lock(spare_chunks().mutex);
    spare_chunks().chunks.push_back(memory_);
  } catch (...) {  // No memory for the list: the chunk is lost.
    spare_chunks().transfers->free_pinned(memory_);
  }
}

// Does nothing in a forked child: the mutex may be locked forever, and the driver cannot be used.
void release_pinned_chunks() noexcept {
  if (fork_depth() > 0) return;
  SpareChunks& spare = spare_chunks();
  const std::lock_guard lock(spare.mutex);
  for (std::byte* chunk : spare.chunks) spare.transfers->free_pinned(chunk);
  spare.chunks.clear();
}

}  // namespace kintsugi::core
