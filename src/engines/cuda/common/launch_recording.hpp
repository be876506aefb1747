// Launches of a call that are recorded, and then made together.
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

// While it exists, launches of its thread into its stream are recorded. launch() makes them, as one graph
// where the calls before had the same kernels (LaunchGraph): that takes the host 2 to 6 us where six launches
// take 14. Recorded launches that were not made when it ends are dropped: the call failed.
class LaunchRecording {
 public:
  // A stream in capture, and one of a part of the device (a green context), has its launches made at once.
  explicit LaunchRecording(const Queue& queue);
  ~LaunchRecording();
  LaunchRecording(const LaunchRecording&) = delete;
  LaunchRecording& operator=(const LaunchRecording&) = delete;

  void launch();

  // Records a launch; false: there is no recording of that stream.
  static bool record(const Launch& launch, const Queue& queue, std::span<const LaunchArgument> arguments);
  // Makes the launches recorded by this thread, before a step that is no launch of a kernel.
  static void launch_recorded();

 private:
  void* stream_;
  bool records_;
  LaunchRecording* outer_;
  RecordedLaunches recorded_;
};

}  // namespace kintsugi::core::cuda
