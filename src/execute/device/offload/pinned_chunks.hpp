// Chunks of pinned host memory. Copies between pageable memory and a device go through them.
#pragma once

#include <cstddef>

#include "engines/device_transfers.hpp"

namespace kintsugi::core {

// A chunk of pinned memory. The destructor keeps the memory for later calls.
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
