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
  // Returns pointers to the launch's arguments. `bytes` is bytes_of() or a copy of it.
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

// Records the launches of its thread into its stream as long as it exists. issue() launches them: as one
// graph if earlier calls had the same kernels (launch_as_graph), else one by one. A graph takes the host 2 to
// 6 us, six single launches take 14 us. Launches that were not issued are dropped at the end, because then
// the call has failed.
class LaunchRecording {
 public:
  // In two cases launches are not recorded but issued immediately: if the stream is being captured, and if it
  // belongs to a part of the device (a green context).
  explicit LaunchRecording(const Queue& queue);
  ~LaunchRecording();
  LaunchRecording(const LaunchRecording&) = delete;
  LaunchRecording& operator=(const LaunchRecording&) = delete;

  void issue();

  // Records a launch. Returns false, and records nothing, if the thread has no recording for this stream.
  static bool record(const Launch& launch, const Queue& queue, std::span<const LaunchArgument> arguments);
  // Issues the launches that this thread has recorded. Must be called before each step that is not a launch
  // of a kernel: such a step cannot be recorded.
  static void issue_recorded();

 private:
  void* stream_;
  bool records_;
  LaunchRecording* outer_;  // the thread's recording that this one interrupts
  RecordedLaunches recorded_;
};

// Executes the launches as one graph. The third call with the same kernels in the same order in this stream
// builds the graph; later calls use it. Grids and arguments may differ between calls. Returns false, and does
// nothing, if there is no graph.
bool launch_as_graph(const RecordedLaunches& recorded, void* stream);

// Frees all graphs. The driver keeps a graph in execution until it has ended.
void release_graphs() noexcept;

}  // namespace kintsugi::core::cuda
