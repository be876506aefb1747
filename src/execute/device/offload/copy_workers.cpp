#include "execute/device/offload/copy_workers.hpp"

#include <cstring>

#include "base/status.hpp"

namespace kintsugi::core {

namespace {

void copy_lines(std::byte* target, std::size_t target_pitch, const std::byte* source,
                std::size_t source_pitch, const CopyPiece& piece) {
  if (target_pitch == piece.line_bytes && source_pitch == piece.line_bytes) {
    std::memcpy(target, source, piece.bytes());
    return;
  }
  for (std::size_t line = 0; line < piece.lines; ++line)
    std::memcpy(target + line * target_pitch, source + line * source_pitch, piece.line_bytes);
}

}  // namespace

CopyWorkers::CopyWorkers(const DeviceTransfers& transfers, const DeviceContexts& contexts,
                         const DeviceContext& context, const Queue& queue, CopyDirection direction,
                         int threads)
    : transfers_(transfers), contexts_(contexts), context_(context), queue_(queue), direction_(direction) {
  const auto count = static_cast<std::size_t>(threads);
  for (std::size_t chunk = 0; chunk < count * chunks_of_thread; ++chunk)
    chunks_.push_back({PinnedChunk(transfers_), OwnedEvent(transfers_)});
  try {
    for (std::size_t thread = 0; thread < count; ++thread)
      threads_.emplace_back([this, thread] { run(thread); });
  } catch (const std::exception&) {  // The threads that could be made do all copies.
    if (threads_.empty()) throw;
  }
}

CopyWorkers::~CopyWorkers() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  has_work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  for (const Chunk& chunk : chunks_) {
    try {
      if (chunk.is_in_use) chunk.was_read.wait();
    } catch (const Error&) {  // The device has failed, so it no longer reads the chunk.
    }
  }
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

// Waits for a piece. Returns false if the thread must end.
bool CopyWorkers::take_piece(CopyGroup*& group, std::size_t& piece) {
  std::unique_lock lock(mutex_);
  has_work_.wait(lock, [&] { return ends_ || failure_ != nullptr || !groups_.empty(); });
  if (ends_ || failure_ != nullptr) return false;
  group = groups_.front();
  piece = group->started++;
  if (group->started == group->pieces.size()) groups_.pop_front();
  return true;
}

void CopyWorkers::run(std::size_t thread) {
  CopyGroup* group = nullptr;
  std::size_t piece = 0;
  std::size_t turn = 0;
  try {
    const ContextScope scope(contexts_, context_);
    if (!scope.entered()) fail(Status::device_error, "the device's context is gone");
    while (take_piece(group, piece)) {
      Chunk& chunk = chunks_[thread * chunks_of_thread + turn++ % chunks_of_thread];
      copy(*group, group->pieces[piece], chunk);
      const std::lock_guard lock(mutex_);
      group->is_copied[piece] = 1;
      ++group->finished;
      has_finished_.notify_all();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (failure_ == nullptr) failure_ = std::current_exception();
    has_work_.notify_all();
    has_finished_.notify_all();
  }
}

void CopyWorkers::copy(const CopyGroup& group, const CopyPiece& piece, Chunk& chunk) {
  if (group.is_pinned) return copy_pinned(piece, chunk);
  if (direction_ == CopyDirection::to_device) return copy_to_device(piece, chunk);
  copy_to_host(piece, chunk);
}

void CopyWorkers::copy_to_device(const CopyPiece& piece, Chunk& chunk) {
  if (chunk.is_in_use) chunk.was_read.wait();
  chunk.is_in_use = true;
  copy_lines(chunk.memory.data(), piece.line_bytes, piece.host, piece.host_pitch, piece);
  transfers_.copy_lines_to_device(queue_, {piece.device, piece.device_pitch},
                                  {chunk.memory.data(), piece.line_bytes}, piece.line_bytes, piece.lines);
  chunk.was_read.record(queue_);
}

void CopyWorkers::copy_to_host(const CopyPiece& piece, Chunk& chunk) {
  transfers_.copy_lines_to_host(queue_, {chunk.memory.data(), piece.line_bytes},
                                {piece.device, piece.device_pitch}, piece.line_bytes, piece.lines);
  chunk.was_read.record(queue_);
  chunk.was_read.wait();
  copy_lines(piece.host, piece.host_pitch, chunk.memory.data(), piece.line_bytes, piece);
}

// The chunk's event alone is used.
void CopyWorkers::copy_pinned(const CopyPiece& piece, Chunk& chunk) {
  if (direction_ == CopyDirection::to_device) {
    transfers_.copy_lines_to_device(queue_, {piece.device, piece.device_pitch},
                                    {piece.host, piece.host_pitch}, piece.line_bytes, piece.lines);
    return;
  }
  transfers_.copy_lines_to_host(queue_, {piece.host, piece.host_pitch}, {piece.device, piece.device_pitch},
                                piece.line_bytes, piece.lines);
  chunk.was_read.record(queue_);
  chunk.was_read.wait();
}

}  // namespace kintsugi::core
