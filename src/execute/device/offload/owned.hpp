// Owners of a device's streams and events, and of chunks of pinned host memory.
#pragma once

#include <cstddef>
#include <utility>

#include "engines/device_context.hpp"

namespace kintsugi::core {

class OwnedEvent {
 public:
  explicit OwnedEvent(const DeviceTransfers& transfers)
      : transfers_(&transfers), event_(transfers.create_event()) {}
  OwnedEvent(OwnedEvent&& other) noexcept
      : transfers_(other.transfers_), event_(std::exchange(other.event_, nullptr)) {}
  OwnedEvent(const OwnedEvent&) = delete;
  OwnedEvent& operator=(const OwnedEvent&) = delete;
  ~OwnedEvent() {
    if (event_ != nullptr) transfers_->destroy_event(event_);
  }

  void record(const Queue& queue) const { transfers_->record(queue, event_); }
  void make_wait(const Queue& queue) const { transfers_->make_wait(queue, event_); }
  void wait() const { transfers_->wait_for(event_); }

 private:
  const DeviceTransfers* transfers_;
  DeviceEvent event_;
};

// A queue of the context that is current when the object is constructed. The stream is kept for later calls,
// since the engine has graphs for each stream.
class OwnedQueue {
 public:
  OwnedQueue(const DeviceTransfers& transfers, const DeviceContexts& contexts);
  OwnedQueue(const OwnedQueue&) = delete;
  OwnedQueue& operator=(const OwnedQueue&) = delete;
  ~OwnedQueue();

  const Queue& get() const { return queue_; }

 private:
  const DeviceTransfers& transfers_;
  const DeviceContexts& contexts_;
  DeviceContext context_;
  Queue queue_;
};

// Destroys the streams that no call uses.
void release_spare_queues() noexcept;

// A chunk of pinned host memory. Copies between pageable memory and a device go through it. The destructor
// keeps the memory for later calls.
class PinnedChunk {
 public:
  // Smaller copies do not reach the full rate of the bus. A chunk of this size and the pageable memory of the
  // same size fit a core's cache.
  static constexpr std::size_t bytes = std::size_t{2} << 20;

  // Fails with out_of_memory.
  explicit PinnedChunk(const DeviceTransfers& transfers);
  PinnedChunk(PinnedChunk&& other) noexcept;
  PinnedChunk(const PinnedChunk&) = delete;
  PinnedChunk& operator=(const PinnedChunk&) = delete;
  ~PinnedChunk();

  std::byte* data() const { return memory_; }

 private:
  std::byte* memory_;
};

// Frees the chunks that no call uses.
void release_pinned_chunks() noexcept;

}  // namespace kintsugi::core
