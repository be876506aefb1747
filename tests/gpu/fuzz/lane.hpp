// Resources of one worker of the differential test: memory for a case's matrices and its workspace, and a
// stream. The memory is the device's, or the host's where generator and judge are tested without a device.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "kintsugi/kintsugi.h"

namespace kintsugi::test {

class Lane {
 public:
  Lane() = default;
  virtual ~Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  virtual std::byte* matrices() const = 0;
  virtual std::byte* workspace() const = 0;
  // Host memory of the same size, for matrices that the library copies to the device itself.
  virtual std::byte* host_matrices() const = 0;
  virtual kintsugi_queue queue() const = 0;
  // Copies and fills are done when synchronize() comes back.
  virtual void upload(std::byte* target, const void* source, std::size_t bytes) const = 0;
  virtual void download(void* target, const std::byte* source, std::size_t bytes) const = 0;
  virtual void fill(std::byte* target, unsigned char value, std::size_t bytes) const = 0;
  virtual void synchronize() const = 0;
  // Captures what `enqueue` puts into the stream and launches that graph `launches` times; calls
  // before(launch) in front of each.
  virtual void replay(const std::function<void()>& enqueue, int launches,
                      const std::function<void(int)>& before) const = 0;

  // Sizes of the two memories.
  static constexpr std::size_t matrix_bytes = std::size_t{64} << 20;
  static constexpr std::size_t workspace_bytes = std::size_t{160} << 20;
};

std::unique_ptr<Lane> make_host_lane();
std::unique_ptr<Lane> make_device_lane();

}  // namespace kintsugi::test
