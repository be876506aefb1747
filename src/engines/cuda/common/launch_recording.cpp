#include "engines/cuda/common/launch_recording.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "engines/cuda/common/launch_graph.hpp"

namespace kintsugi::core::cuda {

namespace {

thread_local LaunchRecording* current_recording = nullptr;
// Memory of recorded launches that is kept between calls, so that recording allocates no host memory.
thread_local RecordedLaunches spare_launches;

// True if launches into the stream may be executed as a graph.
bool can_record(void* stream) {
  if (!driver().has_later_functions() || may_be_captured(stream)) return false;
  Context regular = nullptr;
  GreenContext green = nullptr;
  return driver().stream_contexts(stream, &regular, &green) == 0 && green == nullptr;
}

void launch_one_by_one(const RecordedLaunches& recorded, void* stream) {
  for (std::size_t i = 0; i < recorded.launches().size(); ++i) {
    auto pointers = recorded.pointers(i, recorded.bytes_of(i).data());
    launch_now(recorded.launches()[i], stream, pointers.data());
  }
}

}  // namespace

void RecordedLaunches::add(const Launch& launch, std::span<const LaunchArgument> arguments) {
  constexpr std::size_t alignment = 64;  // that of a tensor map, the largest of all arguments
  launches_.push_back(launch);
  first_arguments_.push_back(arguments_.size());
  first_bytes_.push_back(bytes_.size());
  for (const LaunchArgument& argument : arguments) {
    arguments_.push_back({bytes_.size() - first_bytes_.back(), argument.bytes});
    const auto* data = static_cast<const std::byte*>(argument.data);
    bytes_.insert(bytes_.end(), data, data + argument.bytes);
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
  }
}

void RecordedLaunches::clear() {
  launches_.clear();
  first_arguments_.clear();
  first_bytes_.clear();
  arguments_.clear();
  bytes_.clear();
}

std::span<const std::byte> RecordedLaunches::bytes_of(std::size_t launch) const {
  const std::size_t end = launch + 1 < launches_.size() ? first_bytes_[launch + 1] : bytes_.size();
  return std::span(bytes_).subspan(first_bytes_[launch], end - first_bytes_[launch]);
}

std::array<void*, max_launch_arguments> RecordedLaunches::pointers(std::size_t launch,
                                                                   const std::byte* bytes) const {
  const std::size_t end = launch + 1 < launches_.size() ? first_arguments_[launch + 1] : arguments_.size();
  std::array<void*, max_launch_arguments> result{};
  for (std::size_t i = first_arguments_[launch]; i < end; ++i)
    result[i - first_arguments_[launch]] = const_cast<std::byte*>(bytes + arguments_[i].offset);
  return result;
}

// A recording may begin while another one exists, since a caller's allocator may call the library. The
// launches of the outer call come first; so they are issued now.
LaunchRecording::LaunchRecording(const Queue& queue)
    : stream_(queue.stream), records_(can_record(queue.stream)) {
  issue_recorded();
  outer_ = std::exchange(current_recording, this);
  if (outer_ == nullptr) std::swap(recorded_, spare_launches);
}

LaunchRecording::~LaunchRecording() {
  current_recording = outer_;
  recorded_.clear();
  if (outer_ == nullptr) std::swap(recorded_, spare_launches);
}

void LaunchRecording::issue() {
  if (recorded_.launches().empty()) return;
  if (!launch_as_graph(recorded_, stream_)) launch_one_by_one(recorded_, stream_);
  recorded_.clear();
}

bool LaunchRecording::record(const Launch& launch, const Queue& queue,
                             std::span<const LaunchArgument> arguments) {
  LaunchRecording* recording = current_recording;
  if (recording == nullptr || !recording->records_) return false;
  if (recording->stream_ != queue.stream) {
    recording->issue();
    return false;
  }
  recording->recorded_.add(launch, arguments);
  return true;
}

void LaunchRecording::issue_recorded() {
  if (current_recording != nullptr) current_recording->issue();
}

}  // namespace kintsugi::core::cuda
