// Pinned memory of the host, through which pageable memory is copied; kept between calls.
#pragma once

#include <cstddef>

#include "engines/device_transfers.hpp"

namespace kintsugi::core {

// A chunk of pinned memory, returned for later calls at the end of its lifetime.
class PinnedChunk {
 public:
  // Copies of fewer bytes do not reach the full rate of the bus; a chunk of this size and the pageable memory
  // that it is a copy of fit a core's cache.
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
