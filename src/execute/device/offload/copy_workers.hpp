// Threads that copy pieces of matrices between pageable memory and a device, through pinned memory.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "engines/device_context.hpp"
#include "engines/device_transfers.hpp"
#include "execute/device/offload/owned.hpp"
#include "execute/device/offload/pieces.hpp"
#include "execute/device/offload/pinned_chunks.hpp"
#include "execute/report.hpp"

namespace kintsugi::core {

enum class CopyDirection { to_device, to_host };

// Pieces that wait_for() waits for together.
struct CopyGroup {
  std::vector<CopyPiece> pieces{};
  bool is_pinned = false;         // true: the host's matrix is pinned; the device copies it without a chunk
  const OwnedEvent* after{};      // event for which the queue waits before the first piece, if not nullptr
  std::vector<char> is_copied{};  // for each piece
  std::size_t started = 0;        // pieces that a thread took
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

  // The group must live until wait_for() has returned for it, or until the workers have ended. Groups are
  // started in the order of the calls of add().
  void add(CopyGroup& group);
  // Waits until all copies of the group are in the queue (direction to_device), or until all pieces are in
  // host memory (to_host). Throws the first error of any piece of these workers.
  void wait_for(CopyGroup& group);

  // Ends the threads, and returns the sums of their times.
  OffloadCopyTimes end_and_sum_times();

 private:
  // Pinned memory, and an event that is complete when the device has read or filled it.
  struct Chunk {
    PinnedChunk memory;
    OwnedEvent is_done;
    bool is_in_use = false;
  };
  static constexpr std::size_t chunks_of_thread = 2;  // the device works on one chunk, the thread on another

  // A piece that a thread copies.
  struct Taken {
    CopyGroup* group = nullptr;
    std::size_t number = 0;
    Chunk* chunk = nullptr;

    const CopyPiece& piece() const { return group->pieces[number]; }
  };

  void end();
  void run(std::size_t thread);
  void copy_pieces(std::size_t thread);
  std::optional<Taken> take_piece(bool may_wait);
  void begin(const Taken& taken, OffloadCopyTimes& times);
  void complete(const Taken& taken, OffloadCopyTimes& times);
  void queue_copy(const Taken& taken, OffloadCopyTimes& times);
  static void wait_for(Chunk& chunk, OffloadCopyTimes& times);
  void mark_copied(const Taken& taken);

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
  std::vector<OffloadCopyTimes> times_;  // a thread's own until it has ended
  std::vector<std::thread> threads_;
};

}  // namespace kintsugi::core
