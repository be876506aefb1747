#include "engines/cuda/transfers.hpp"

#include <algorithm>
#include <cstring>

#include "base/memory.hpp"
#include "base/status.hpp"
#include "base/stopwatch.hpp"
#include "base/threads.hpp"

namespace kintsugi::core::cuda {

namespace {

// Streams and chunks of pinned memory that no call uses.
struct Spare {
  std::mutex mutex;
  std::vector<std::pair<DeviceContext, Queue>> queues;
  std::vector<std::byte*> chunks;
};

// Never destroyed, since a call may be made after static objects were destroyed.
Spare& spare() {
  static auto* instance = new Spare;
  return *instance;
}

}  // namespace

OwnedQueue::OwnedQueue() : context_(current_context()) {
  {
    const std::lock_guard lock(spare().mutex);
    auto& queues = spare().queues;
    const auto found = std::ranges::find(queues, context_, [](const auto& each) { return each.first; });
    if (found != queues.end()) {
      queue_ = found->second;
      queues.erase(found);
      return;
    }
  }
  constexpr unsigned non_blocking = 1;
  Stream stream = nullptr;
  check(driver().stream_create(&stream, non_blocking), "cuStreamCreate");
  queue_ = {QueueKind::cuda, stream};
}

OwnedQueue::~OwnedQueue() {
  try {
    const std::lock_guard lock(spare().mutex);
    spare().queues.emplace_back(context_, queue_);
  } catch (...) {  // No memory for the list.
    driver().stream_destroy(queue_.stream);
  }
}

PinnedChunk::PinnedChunk() : memory_(nullptr) {
  {
    const std::lock_guard lock(spare().mutex);
    auto& chunks = spare().chunks;
    if (!chunks.empty()) {
      memory_ = chunks.back();
      chunks.pop_back();
      return;
    }
  }
  void* memory = nullptr;
  const Result result = driver().host_allocate(&memory, bytes, portable_host_memory);
  if (result == error_out_of_memory)
    fail(Status::out_of_memory, "the host has no {} bytes of pinned memory", bytes);
  check(result, "cuMemHostAlloc");
  memory_ = static_cast<std::byte*>(memory);
}

PinnedChunk::~PinnedChunk() {
  if (memory_ == nullptr) return;
  try {
    const std::lock_guard lock(spare().mutex);
    spare().chunks.push_back(memory_);
  } catch (...) {  // No memory for the list.
    driver().host_free(memory_);
  }
}

// Does nothing in a forked child: the mutex may be locked forever, and the driver cannot be used.
void release_kept_transfers() noexcept {
  if (fork_depth() > 0) return;
  const std::lock_guard lock(spare().mutex);
  for (std::byte* chunk : spare().chunks) driver().host_free(chunk);
  spare().chunks.clear();
  for (const auto& [context, queue] : spare().queues) {
    const ContextScope scope(context);
    if (scope.entered()) driver().stream_destroy(queue.stream);  // else it ended with its context
  }
  spare().queues.clear();
}

bool is_pinned(const void* host) {
  std::uint32_t type = 0;
  const auto address = reinterpret_cast<Address>(host);
  return driver().pointer_attribute(&type, pointer_memory_type, address) == 0 && type == memory_of_host;
}

namespace {

// Cuts a range into parts of at most `count` indices.
std::vector<Interval> parts_of_range(const Interval& range, std::int64_t count) {
  std::vector<Interval> parts;
  for (std::int64_t first = range.first; first < range.end(); first += count)
    parts.push_back({first, std::min(count, range.end() - first)});
  return parts;
}

}  // namespace

StoredMatrix stored_in(const StoredMatrix& strip, const PartOfStrip& part, std::int64_t length) {
  const bool rows_are_lines = strip.rows_are_lines;
  const std::int64_t before = rows_are_lines ? part.row * line_pitch(length) + part.column * part.rows
                                             : part.column * line_pitch(length) + part.row * part.columns;
  StoredMatrix stored = strip.after(before);
  stored.ld = line_pitch(rows_are_lines ? part.columns : part.rows);
  return stored;
}

std::vector<CopyPiece> cut_into_pieces(const StoredMatrix& host, const Interval& rows,
                                       const Interval& columns, const StoredMatrix& device,
                                       std::size_t max_bytes) {
  const Interval& lines = host.rows_are_lines ? rows : columns;
  const Interval& along = host.rows_are_lines ? columns : rows;
  const auto max_elements =
      std::max<std::int64_t>(static_cast<std::int64_t>(max_bytes / host.element_bytes), 1);
  const std::int64_t length = std::min(along.count, max_elements);
  const std::int64_t lines_of_piece =
      std::max<std::int64_t>(max_elements / std::max<std::int64_t>(line_pitch(length), 1), 1);
  std::vector<CopyPiece> pieces;
  for (const Interval& some_lines : parts_of_range(lines, lines_of_piece)) {
    for (const Interval& part : parts_of_range(along, std::max<std::int64_t>(length, 1))) {
      const Interval piece_rows = host.rows_are_lines ? some_lines : part;
      const Interval piece_columns = host.rows_are_lines ? part : some_lines;
      pieces.push_back(
          {.host = host.at(piece_rows.first, piece_columns.first),
           .device = device.at(piece_rows.first - rows.first, piece_columns.first - columns.first),
           .host_pitch = host.pitch(),
           .device_pitch = device.pitch(),
           .line_bytes = static_cast<std::size_t>(part.count) * host.element_bytes,
           .lines = static_cast<std::size_t>(some_lines.count),
           .rows = piece_rows,
           .columns = piece_columns});
    }
  }
  return pieces;
}

namespace {

using CopyBytes = void (*)(std::byte* target, const std::byte* source, std::size_t bytes);

void copy_bytes(std::byte* target, const std::byte* source, std::size_t bytes) {
  std::memcpy(target, source, bytes);
}

void copy_lines(std::byte* target, std::size_t target_pitch, const std::byte* source,
                std::size_t source_pitch, const CopyPiece& piece, CopyBytes copy) {
  if (target_pitch == piece.line_bytes && source_pitch == piece.line_bytes)
    return copy(target, source, piece.bytes());
  for (std::size_t line = 0; line < piece.lines; ++line)
    copy(target + line * target_pitch, source + line * source_pitch, piece.line_bytes);
}

}  // namespace

CopyWorkers::CopyWorkers(const DeviceContext& context, const Queue& queue, CopyDirection direction,
                         int threads)
    : context_(context), queue_(queue), direction_(direction) {
  const auto count = static_cast<std::size_t>(threads);
  for (std::size_t chunk = 0; chunk < count * chunks_of_thread; ++chunk) chunks_.emplace_back();
  times_.resize(count);
  try {
    for (std::size_t thread = 0; thread < count; ++thread)
      threads_.emplace_back([this, thread] { run(thread); });
  } catch (const std::exception&) {  // The threads that could be made do all copies.
    if (threads_.empty()) throw;
  }
}

CopyWorkers::~CopyWorkers() {
  end();
  for (const Chunk& chunk : chunks_) {
    try {
      if (chunk.is_in_use) chunk.is_done.wait();
    } catch (const Error&) {  // the device has failed, and uses nothing any more
    }
  }
}

void CopyWorkers::end() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  has_work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

CopyTimes CopyWorkers::end_and_sum_times() {
  end();
  CopyTimes all;
  for (const CopyTimes& times : times_) all.add(times);
  return all;
}

void CopyWorkers::add(CopyGroup& group) {
  group.is_copied.assign(group.pieces.size(), 0);
  if (group.pieces.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    groups_.push_back(&group);
  }
  has_work_.notify_all();
}

void CopyWorkers::wait_for(CopyGroup& group) {
  std::unique_lock lock(mutex_);
  has_finished_.wait(lock, [&] { return failure_ != nullptr || group.finished == group.pieces.size(); });
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void CopyWorkers::run(std::size_t thread) {
  try {
    const ContextScope scope(context_);
    if (!scope.entered()) fail(Status::device_error, "the device's context is gone");
    copy_pieces(thread);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (failure_ == nullptr) failure_ = std::current_exception();
    has_work_.notify_all();
    has_finished_.notify_all();
  }
}

// The thread begins a piece before it completes the one before, so that the device copies meanwhile.
void CopyWorkers::copy_pieces(std::size_t thread) {
  CopyTimes& times = times_[thread];
  times.threads = 1;
  std::optional<Taken> begun;
  for (std::size_t turn = 0;; ++turn) {
    std::optional<Taken> next = take_piece(!begun);
    if (!next && !begun) return;
    if (next) {
      next->chunk = &chunks_[thread * chunks_of_thread + turn % chunks_of_thread];
      const bool is_pinned = next->group->is_pinned;
      begin(*next, times);  // ends the life of a group whose last piece is copied to the device
      // The device writes pinned memory of the caller: a piece there is never left half done.
      if (is_pinned) {
        complete(*next, times);
        next.reset();
      }
    }
    if (begun) complete(*begun, times);
    begun = next;
  }
}

// Returns nothing if there is no piece and the thread should not wait for one, or is to end.
std::optional<CopyWorkers::Taken> CopyWorkers::take_piece(bool may_wait) {
  std::unique_lock lock(mutex_);
  if (may_wait) has_work_.wait(lock, [&] { return ends_ || failure_ != nullptr || !groups_.empty(); });
  if (ends_ || failure_ != nullptr || groups_.empty()) return {};
  CopyGroup& group = *groups_.front();
  if (group.started == 0 && group.after != nullptr) group.after->make_wait(queue_);
  const std::size_t number = group.started++;
  if (group.started == group.pieces.size()) groups_.pop_front();
  return Taken{&group, number};
}

// A piece for the device is copied when its copy is in the queue: events that are recorded later wait for it.
void CopyWorkers::begin(const Taken& taken, CopyTimes& times) {
  Chunk& chunk = *taken.chunk;
  const CopyPiece& piece = taken.piece();
  if (direction_ == CopyDirection::to_device && !taken.group->is_pinned) {
    if (chunk.is_in_use) wait_for(chunk, times);
    const Stopwatch watch(times.copying);
    copy_lines(chunk.memory.data(), piece.chunk_pitch(), piece.host, piece.host_pitch, piece, copy_bytes);
  }
  queue_copy(taken, times);
  if (direction_ == CopyDirection::to_device) mark_copied(taken);
}

void CopyWorkers::complete(const Taken& taken, CopyTimes& times) {
  if (direction_ == CopyDirection::to_device) return;
  wait_for(*taken.chunk, times);
  if (!taken.group->is_pinned) {
    const CopyPiece& piece = taken.piece();
    const Stopwatch watch(times.copying);
    copy_lines(piece.host, piece.host_pitch, taken.chunk->memory.data(), piece.chunk_pitch(), piece,
               streaming_copy);
  }
  mark_copied(taken);
}

// A pinned matrix needs the chunk's event alone.
void CopyWorkers::queue_copy(const Taken& taken, CopyTimes& times) {
  const Stopwatch watch(times.queueing);
  const CopyPiece& piece = taken.piece();
  const bool is_pinned = taken.group->is_pinned;
  const bool is_one_line = !is_pinned && piece.is_one_line();
  const std::size_t line_bytes = is_one_line ? piece.bytes_of_one_line() : piece.line_bytes;
  const std::size_t lines = is_one_line ? 1 : piece.lines;
  const CopySide host =
      is_pinned ? CopySide{.memory_type = memory_of_host, .host = piece.host, .pitch = piece.host_pitch}
                : CopySide{.memory_type = memory_of_host,
                           .host = taken.chunk->memory.data(),
                           .pitch = std::max(piece.chunk_pitch(), line_bytes)};
  // The driver takes no lines that are longer than their distance.
  const CopySide device{.memory_type = memory_of_device,
                        .device = reinterpret_cast<Address>(piece.device),
                        .pitch = std::max(piece.device_pitch, line_bytes)};
  const bool is_upload = direction_ == CopyDirection::to_device;
  const CopyLines copy{is_upload ? host : device, is_upload ? device : host, line_bytes, lines};
  check(driver().copy_lines_async(&copy, queue_.stream), "cuMemcpy2DAsync");
  taken.chunk->is_in_use = true;
  taken.chunk->is_done.record(queue_);
}

void CopyWorkers::wait_for(Chunk& chunk, CopyTimes& times) {
  const Stopwatch watch(times.waiting);
  chunk.is_done.wait();
  chunk.is_in_use = false;
}

void CopyWorkers::mark_copied(const Taken& taken) {
  const std::lock_guard lock(mutex_);
  taken.group->is_copied[taken.number] = 1;
  if (++taken.group->finished == taken.group->pieces.size()) has_finished_.notify_all();
}

}  // namespace kintsugi::core::cuda
