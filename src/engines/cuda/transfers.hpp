// Copies of matrices between pageable host memory and a device: streams, events and pinned memory with
// owners, the pieces of a matrix, and threads that copy these through pinned memory.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/queue.hpp"
#include "base/view.hpp"
#include "engines/cuda/device.hpp"

namespace kintsugi::core::cuda {

// An event is complete when its queue has done all work that it had at the last record().
class OwnedEvent {
 public:
  OwnedEvent() { check(driver().event_create(&event_, waiting_event_flags), "cuEventCreate"); }
  OwnedEvent(OwnedEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  OwnedEvent(const OwnedEvent&) = delete;
  OwnedEvent& operator=(const OwnedEvent&) = delete;
  ~OwnedEvent() {
    if (event_ != nullptr) driver().event_destroy(event_);
  }

  void record(const Queue& queue) const {
    check(driver().event_record(event_, queue.stream), "cuEventRecord");
  }
  // Makes the queue wait; the host goes on.
  void make_wait(const Queue& queue) const {
    check(driver().stream_wait_event(queue.stream, event_, 0), "cuStreamWaitEvent");
  }
  void wait() const { check(driver().event_synchronize(event_), "cuEventSynchronize"); }  // the host waits

 private:
  Event event_ = nullptr;
};

// A queue of the context that is current when the object is constructed. The stream is kept for later calls,
// since there are graphs of launches for each stream.
class OwnedQueue {
 public:
  OwnedQueue();
  OwnedQueue(const OwnedQueue&) = delete;
  OwnedQueue& operator=(const OwnedQueue&) = delete;
  ~OwnedQueue();

  const Queue& get() const { return queue_; }

 private:
  DeviceContext context_;
  Queue queue_;
};

// A chunk of pinned host memory. Copies between pageable memory and a device go through it. The destructor
// keeps the memory for later calls.
class PinnedChunk {
 public:
  // Smaller copies do not reach the full rate of the bus. A chunk of this size and the pageable memory of the
  // same size fit a core's cache.
  static constexpr std::size_t bytes = std::size_t{2} << 20;

  PinnedChunk();  // fails with out_of_memory
  PinnedChunk(PinnedChunk&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}
  PinnedChunk(const PinnedChunk&) = delete;
  PinnedChunk& operator=(const PinnedChunk&) = delete;
  ~PinnedChunk();

  std::byte* data() const { return memory_; }

 private:
  std::byte* memory_;
};

// Destroys the streams, and frees the chunks, that no call uses.
void release_kept_transfers() noexcept;

// True for host memory that the program itself has page-locked.
bool is_pinned(const void* host);

// A matrix with contiguous lines (rows or columns) that are `ld` elements apart. The rows of an operand are
// its vectors; the columns are the inner indices.
struct StoredMatrix {
  std::byte* data = nullptr;
  std::int64_t ld = 0;
  bool rows_are_lines = false;
  std::size_t element_bytes = 0;

  std::byte* at(std::int64_t row, std::int64_t column) const {
    const std::int64_t index = rows_are_lines ? row * ld + column : column * ld + row;
    return data + index * static_cast<std::int64_t>(element_bytes);
  }
  StoredMatrix after(std::int64_t elements) const {
    StoredMatrix matrix = *this;
    matrix.data += elements * static_cast<std::int64_t>(element_bytes);
    return matrix;
  }
  std::size_t pitch() const { return static_cast<std::size_t>(ld) * element_bytes; }
};

// Returns the distance of a strip's lines in device memory, in elements, if `length` is the longest line.
constexpr std::int64_t line_pitch(std::int64_t length) {
  constexpr std::int64_t alignment = 16;
  return round_up(length, alignment);
}

// A part of a matrix that a strip holds contiguously. It begins at this row and column of the strip; earlier
// parts lie before it.
struct PartOfStrip {
  std::int64_t row, column;
  std::int64_t rows, columns;
};

// Returns the part in the strip's memory. `length`: length of the strip's longest line. Parts beside each
// other divide the memory of the lines; each part begins at a multiple of the lines' alignment.
StoredMatrix stored_in(const StoredMatrix& strip, const PartOfStrip& part, std::int64_t length);

// Part of a matrix that one copy takes.
struct CopyPiece {
  std::byte* host = nullptr;
  std::byte* device = nullptr;
  std::size_t host_pitch = 0;
  std::size_t device_pitch = 0;
  std::size_t line_bytes = 0;
  std::size_t lines = 0;
  Interval rows;  // rows of the host's matrix
  Interval columns;
  std::int64_t item = 0;  // batch item

  std::size_t bytes() const { return line_bytes * lines; }

  // Returns the distance of the lines in a chunk. Lines that are a few bytes apart on the device have the
  // same distance in the chunk, so that a single copy takes all lines. Copies of single lines of some
  // kilobytes halve the rate of the bus.
  std::size_t chunk_pitch() const {
    constexpr std::size_t max_padding = 256;
    return device_pitch - line_bytes < max_padding ? device_pitch : line_bytes;
  }
  bool is_one_line() const { return lines == 1 || chunk_pitch() == device_pitch; }
  std::size_t bytes_of_one_line() const { return chunk_pitch() * (lines - 1) + line_bytes; }
};

// Returns the pieces of these rows and columns of the host's matrix, each of at most `max_bytes` bytes, or
// one element. The device's matrix begins with the first of these elements.
std::vector<CopyPiece> cut_into_pieces(const StoredMatrix& host, const Interval& rows,
                                       const Interval& columns, const StoredMatrix& device,
                                       std::size_t max_bytes);

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

// Seconds that the threads of one direction spent, all of them together.
struct CopyTimes {
  int threads = 0;
  double waiting = 0;   // for the device, which reads or fills pinned memory
  double copying = 0;   // between pageable and pinned memory
  double queueing = 0;  // copies of the device

  void add(const CopyTimes& other) {
    threads += other.threads;
    waiting += other.waiting;
    copying += other.copying;
    queueing += other.queueing;
  }
};

// Threads for one direction and one queue of a device.
class CopyWorkers {
 public:
  // `context`: context of the queue. Fails with out_of_memory if there is no pinned memory.
  CopyWorkers(const DeviceContext& context, const Queue& queue, CopyDirection direction, int threads);
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
  CopyTimes end_and_sum_times();

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
  void begin(const Taken& taken, CopyTimes& times);
  void complete(const Taken& taken, CopyTimes& times);
  void queue_copy(const Taken& taken, CopyTimes& times);
  static void wait_for(Chunk& chunk, CopyTimes& times);
  void mark_copied(const Taken& taken);

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
  std::vector<CopyTimes> times_;  // a thread's own until it has ended
  std::vector<std::thread> threads_;
};

}  // namespace kintsugi::core::cuda
