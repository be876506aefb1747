#include "calibrate/tasks.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include "engines/cuda/device.hpp"

namespace kintsugi::core::calibrate {

namespace {

// Fills memory with copies of a pattern of random numbers. The pattern's length is odd, so that the rows of a
// matrix differ.
template <class T>
void fill_numbers(const cuda::OwnedStream& stream, std::byte* target, std::size_t bytes) {
  std::vector<T> pattern((1 << 21) - 3);
  // The same numbers in every calibration. All bits of a significand are random, since products of numbers
  // with zeros in them take less power.
  std::mt19937_64 random(1);
  for (T& x : pattern) x = static_cast<T>(static_cast<double>(static_cast<std::int64_t>(random())) * 0x1p-63);
  const std::size_t pattern_bytes = pattern.size() * sizeof(T);
  stream.upload(target, pattern.data(), pattern_bytes);
  for (std::size_t first = pattern_bytes; first < bytes; first += pattern_bytes)
    stream.copy(target + first, target, std::min(pattern_bytes, bytes - first));
  stream.synchronize();
}

// Returns the median. Reorders the times.
double median(std::vector<double>& times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace

Workbench::Workbench(bool quick)
    : rounds_(quick ? 3 : 7), matrices_(matrix_bytes), results_(result_bytes), scratch_(scratch_bytes) {}

void Workbench::fill(ElementType type) {
  const bool is_single = type == ElementType::f32 || type == ElementType::c32;
  const std::size_t width = is_single ? sizeof(float) : sizeof(double);
  if (filled_width_ == width) return;
  const cuda::OwnedStream stream;
  if (is_single) fill_numbers<float>(stream, matrices_.data(), matrix_bytes);
  if (!is_single) fill_numbers<double>(stream, matrices_.data(), matrix_bytes);
  stream.fill(results_.data(), 0, result_bytes);  // no NaN for steps that read C
  stream.synchronize();
  filled_width_ = width;
}

std::byte* Workbench::matrix(std::size_t bytes, int index) const {
  const std::size_t stride = aligned_size(bytes);
  const std::size_t count = std::max<std::size_t>(1, matrix_bytes / stride);
  return matrices_.data() + static_cast<std::size_t>(index) % count * stride;
}

double Workbench::microseconds(double expected, const std::function<void(const Queue&, int)>& step) const {
  constexpr double longest_of_several = 30e3;
  const int steps = expected < longest_of_several ? 8 : 1;  // steps in the graph
  // Times are in microseconds. Long steps are repeated for a longer time, so that the device reaches its
  // power limit.
  constexpr double long_step = 300;
  const double round_time = expected < long_step ? 3e3 : 30e3;
  cuda::synchronize();
  const cuda::OwnedStream stream;
  const cuda::OwnedGraph graph(stream, [&] {
    for (int i = 0; i < steps; ++i) step({QueueKind::cuda, stream.native()}, i);
  });
  const int replays = std::clamp(static_cast<int>(round_time / (expected * steps)), 1, 100);
  const auto replay = [&] {
    for (int i = 0; i < replays; ++i) graph.launch(stream);
  };
  replay();  // warms up
  std::vector<double> times;
  for (int round = 0; round < rounds_; ++round) times.push_back(stream.seconds_of(replay));
  return 1e6 * median(times) / (replays * steps);
}

double Workbench::copy_microseconds(std::size_t bytes) const {
  constexpr int copies = 4;
  const cuda::OwnedStream stream;
  const auto copy = [&] {
    for (int i = 0; i < copies; ++i) stream.copy(results_.data(), matrix(bytes), bytes);
  };
  copy();  // warms up
  std::vector<double> times;
  for (int round = 0; round < rounds_; ++round) times.push_back(stream.seconds_of(copy));
  return 1e6 * median(times) / copies;
}

int matrices_beyond_caches(std::size_t bytes) {
  constexpr std::size_t enough = std::size_t{200} << 20;
  return static_cast<int>(std::clamp<std::size_t>(enough / std::max<std::size_t>(1, bytes), 1, 8));
}

}  // namespace kintsugi::core::calibrate
