// Owners of a device's streams and events.
#pragma once

#include <utility>

#include "engines/device_context.hpp"
#include "engines/device_transfers.hpp"

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

}  // namespace kintsugi::core
