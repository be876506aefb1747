// Memory, timing and results of programs that measure on a device.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/cuda/cuda_driver.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/steps.hpp"
#include "engines/registry.hpp"
#include "tools/measure/generators/random.hpp"
#include "tools/measure/machine/device.hpp"

namespace kintsugi::core {

using cuda::check;
using cuda::driver;

class Memory {
 public:
  explicit Memory(std::size_t bytes) { check(driver().memory_allocate(&address_, bytes), "cuMemAlloc"); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { driver().memory_free(address_); }
  cuda::Address address() const { return address_; }
  std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }

 private:
  cuda::Address address_ = 0;
};

// Median of an odd number of times.
inline double median(std::vector<double> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// Median over an odd number of rounds of the seconds that one of `count` runs takes.
template <class Run>
double seconds(int count, const Run& run, int rounds = 7) {
  cuda::Event start = nullptr;
  cuda::Event stop = nullptr;
  check(driver().event_create(&start, 0), "cuEventCreate");
  check(driver().event_create(&stop, 0), "cuEventCreate");
  std::vector<double> times;
  for (int i = 0; i < 3; ++i) run(i);
  for (int round = 0; round < rounds; ++round) {
    check(driver().event_record(start, nullptr), "cuEventRecord");
    for (int i = 0; i < count; ++i) run(i);
    check(driver().event_record(stop, nullptr), "cuEventRecord");
    check(driver().event_synchronize(stop), "cuEventSynchronize");
    float milliseconds = 0;
    check(driver().event_elapsed(&milliseconds, start, stop), "cuEventElapsedTime");
    times.push_back(1e-3 * milliseconds / count);
  }
  driver().event_destroy(start);
  driver().event_destroy(stop);
  return median(times);
}

// Random numbers that are repeated to fill a matrix. Their count is odd, so that no two rows or columns of a
// matrix are equal.
template <class T>
struct Pattern {
  explicit Pattern(std::uint64_t seed) {
    measure::Random random(seed);
    for (T& x : values) x = static_cast<T>(random.symmetric());
  }
  T at(std::int64_t index) const { return values[static_cast<std::size_t>(index) % values.size()]; }
  void fill(const Memory& memory, std::size_t count) const {
    const std::size_t pattern_size = std::min(values.size(), count);
    core::cuda::copy_to_device({}, memory.data(), values.data(), pattern_size * sizeof(T));
    for (std::size_t first = pattern_size; first < count; first += pattern_size) {
      check(driver().copy_on_device_async(memory.address() + first * sizeof(T), memory.address(),
                                          std::min(pattern_size, count - first) * sizeof(T), nullptr),
            "cuMemcpyDtoDAsync");
    }
  }
  std::vector<T> values = std::vector<T>((1 << 22) - 3);
};

// Median of the seconds that one step takes in a graph of `count` steps, which is replayed for some
// milliseconds.
template <class Step>
double seconds_in_graph(int count, double max_seconds, const Step& step) {
  core::cuda::synchronize();  // the new stream does not wait for work of other streams by itself
  const measure::DeviceStream stream;
  const measure::DeviceGraph graph(stream, [&] {
    for (int i = 0; i < count; ++i) step(Queue{QueueKind::cuda, stream.native()}, i);
  });
  const int replays = std::max(2, static_cast<int>(5e-3 / (max_seconds * count)));
  const auto replay = [&] {
    for (int i = 0; i < replays; ++i) graph.launch(stream);
  };
  replay();
  std::vector<double> times;
  for (int round = 0; round < 7; ++round) times.push_back(stream.seconds_of(replay) / (replays * count));
  return median(times);
}

// Calls `run` where there is a device, else says why there is none. Returns the program's exit status.
template <class Run>
int run_on_device(const char* program, const Run& run) {
  const std::string reason = find_engine("cuda")->unavailable_reason();
  if (!reason.empty()) {
    fmt::print(stderr, "{}: {}\n", program, reason);
    return 1;
  }
  core::cuda::prepare_device();
  return run();
}

// Does nothing where `file` is nullptr.
inline void write_json(const char* file, const nlohmann::json& document) {
  if (file != nullptr) std::ofstream(file) << document.dump(2) << '\n';
}

}  // namespace kintsugi::core
