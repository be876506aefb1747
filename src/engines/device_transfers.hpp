// Copies between pageable host memory and devices, in queues that run at the same time. A comment says for
// each pointer which memory it is in.
#pragma once

#include <cstddef>

#include "base/queue.hpp"
#include "engines/device_context.hpp"

namespace kintsugi::core {

using DeviceEvent = void*;

// Lines of equal length, `pitch` bytes apart.
template <class Byte>
struct Lines {
  Byte* first = nullptr;
  std::size_t pitch = 0;
};

// Copies, memory and events. Functions without a device's number work in the calling thread's context.
class DeviceTransfers {
 public:
  virtual ~DeviceTransfers() = default;

  virtual int devices() const = 0;
  // Returns the primary context of a device, which exists from then on.
  virtual DeviceContext primary_context(int device) const = 0;
  virtual std::size_t free_memory() const = 0;  // bytes of the device

  // Allocates page-locked host memory, which all devices copy without the CPU. Returns nullptr if there is
  // none left.
  virtual std::byte* allocate_pinned(std::size_t bytes) const = 0;
  virtual void free_pinned(std::byte* memory) const noexcept = 0;
  // True for host memory that the program itself has page-locked.
  virtual bool is_pinned(const void* host) const = 0;

  virtual Queue create_stream() const = 0;
  virtual void destroy_stream(const Queue& queue) const noexcept = 0;
  // An event is complete when its queue has done all work that it had at the last record().
  virtual DeviceEvent create_event() const = 0;
  virtual void destroy_event(DeviceEvent event) const noexcept = 0;
  virtual void record(const Queue& queue, DeviceEvent event) const = 0;
  virtual void make_wait(const Queue& queue, DeviceEvent event) const = 0;  // the host goes on
  virtual void wait_for(DeviceEvent event) const = 0;                       // the host waits

  // Host memory must be pinned: `source` of copy_lines_to_device(), `target` of copy_lines_to_host().
  virtual void copy_lines_to_device(const Queue& queue, const Lines<std::byte>& target,
                                    const Lines<const std::byte>& source, std::size_t line_bytes,
                                    std::size_t lines) const = 0;
  virtual void copy_lines_to_host(const Queue& queue, const Lines<std::byte>& target,
                                  const Lines<const std::byte>& source, std::size_t line_bytes,
                                  std::size_t lines) const = 0;
};

}  // namespace kintsugi::core
