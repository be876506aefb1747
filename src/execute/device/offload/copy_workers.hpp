// Threads that copy pieces of matrices between pageable memory and a device, through pinned memory.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "engines/device_context.hpp"
#include "engines/device_transfers.hpp"
#include "execute/device/offload/owned.hpp"
#include "execute/device/offload/pieces.hpp"
#include "execute/device/offload/pinned_chunks.hpp"

namespace kintsugi::core {

enum class CopyDirection { to_device, to_host };

// Pieces that wait_for() waits for together.
struct CopyGroup {
  std::vector<CopyPiece> pieces{};
  bool is_pinned = false;  // true: the host's matrix is pinned, so the device copies it without a chunk
  std::vector<char> is_copied{};  // one flag for each piece
  std::size_t started = 0;        // number of pieces that threads have taken
  std::size_t finished = 0;
};

// Threads for one direction and one queue of a device.
class CopyWorkers {
 public:
  // `context`: context of the queue. Fails with out_of_memory if there is no pinned memory.
  CopyWorkers(const DeviceTransfers& transfers, const DeviceContexts& contexts, const DeviceContext& context,
              const Queue& queue, CopyDirection direction, int threads);
  CopyWorkers(const CopyWorkers&) = delete;
  CopyWorkers& operator=(const CopyWorkers&) = delete;
  // Waits for pieces that were started. Other pieces are not copied.
  ~CopyWorkers();

  // `group` must live until wait_for(group) has returned, or as long as the workers.
  void add(CopyGroup& group);
  // Waits until all copies of the group are in the queue (direction to_device), or until all pieces are in
  // host memory (to_host). Throws the first error of any piece of these workers.
  void wait_for(CopyGroup& group);

 private:
  // Pinned memory, and an event that is complete when the device has read it.
  struct Chunk {
    PinnedChunk memory;
    OwnedEvent was_read;
    bool is_in_use = false;
  };
  static constexpr std::size_t chunks_of_thread = 2;  // one chunk is filled while the other one is read

  void run(std::size_t thread);
  bool take_piece(CopyGroup*& group, std::size_t& piece);
  void copy(const CopyGroup& group, const CopyPiece& piece, Chunk& chunk);
  void copy_to_device(const CopyPiece& piece, Chunk& chunk);
  void copy_to_host(const CopyPiece& piece, Chunk& chunk);
  void copy_pinned(const CopyPiece& piece, Chunk& chunk);

  const DeviceTransfers& transfers_;
  const DeviceContexts& contexts_;
  DeviceContext context_;
  Queue queue_;
  CopyDirection direction_;
  std::vector<Chunk> chunks_;
  std::mutex mutex_;
  std::condition_variable has_work_;
  std::condition_variable has_finished_;
  std::deque<CopyGroup*> groups_;  // groups with pieces that no thread has taken
  std::exception_ptr failure_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kintsugi::core
