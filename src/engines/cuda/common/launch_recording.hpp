// Launches of a call that are recorded first and then issued together.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "engines/cuda/common/launch.hpp"

namespace kintsugi::core::cuda {

// Launches in order, with copies of their arguments.
class RecordedLaunches {
 public:
  void add(const Launch& launch, std::span<const LaunchArgument> arguments);
  void clear();

  std::span<const Launch> launches() const { return launches_; }
  // Returns the bytes of all arguments of a launch, one after the other.
  std::span<const std::byte> bytes_of(std::size_t launch) const;
  // Returns pointers to the launch's arguments in `bytes`, which are those of bytes_of() or a copy.
  std::array<void*, max_launch_arguments> pointers(std::size_t launch, const std::byte* bytes) const;

 private:
  struct Argument {
    std::size_t offset;  // from the first argument of its launch
    std::size_t bytes;
  };

  std::vector<Launch> launches_;
  std::vector<std::size_t> first_arguments_;  // of each launch
  std::vector<std::size_t> first_bytes_;
  std::vector<Argument> arguments_;
  std::vector<std::byte> bytes_;
};

// While it exists, launches of its thread into its stream are recorded. issue() issues them: as one graph if
// earlier calls had the same kernels (launch_as_graph), else one by one. A graph takes the host 2 to 6 us,
// six launches 14. Recorded launches that were not issued when the recording ends are dropped, because the
// call has failed then.
class LaunchRecording {
 public:
  // Launches into a stream that is being captured, or that belongs to a part of the device (a green context),
  // are not recorded but issued immediately.
  explicit LaunchRecording(const Queue& queue);
  ~LaunchRecording();
  LaunchRecording(const LaunchRecording&) = delete;
  LaunchRecording& operator=(const LaunchRecording&) = delete;

  void issue();

  // Records a launch. Returns false, with nothing recorded, if the thread has no recording for that stream.
  static bool record(const Launch& launch, const Queue& queue, std::span<const LaunchArgument> arguments);
  // Issues the launches that this thread has recorded. It is called before a step that is not the launch of a
  // kernel, and so cannot be recorded.
  static void issue_recorded();

 private:
  void* stream_;
  bool records_;
  LaunchRecording* outer_;  // recording of the thread that this one interrupts
  RecordedLaunches recorded_;
};

}  // namespace kintsugi::core::cuda
