// Device memory with random numbers, and the timing of steps on them.
#pragma once

#include <cstdint>
#include <functional>

#include "base/cuda/owned.hpp"
#include "base/queue.hpp"
#include "engines/device_engine.hpp"

namespace kintsugi::core::calibrate {

class Workbench {
 public:
  // If `quick`, times are of few repetitions.
  Workbench(const DeviceEngine& engine, bool quick);

  const DeviceEngine& engine() const { return engine_; }

  // Fills the memory with random numbers in [-1, 1]: FP32 for f32 and c32, else FP64.
  void fill(ElementType type);
  // One of several matrices of `bytes` bytes, as many as fit.
  std::byte* numbers(std::size_t bytes, int number = 0) const;
  // Memory for results, of result_bytes.
  std::byte* results() const { return results_.data(); }
  std::byte* scratch() const { return scratch_.data(); }

  // Median time in microseconds of one of the steps step(queue, 0), step(queue, 1), ..., which are captured
  // in a graph. `expected` is a guess by which repetitions are chosen.
  double microseconds(double expected, const std::function<void(const Queue&, int)>& step) const;

  // Median time in microseconds of a copy from the numbers to the results. It is not captured in a graph,
  // since the driver copies in another way there.
  double copy_microseconds(std::size_t bytes) const;

  static constexpr std::size_t number_bytes = std::size_t{1} << 30;
  static constexpr std::size_t result_bytes = std::size_t{1} << 29;
  static constexpr std::size_t scratch_bytes = std::size_t{256} << 20;

 private:
  const DeviceEngine& engine_;
  int rounds_;
  cuda::OwnedMemory numbers_, results_, scratch_;
  std::size_t filled_width_ = 0;  // bytes per number
};

// Number of matrices of `bytes` bytes that together exceed every cache.
int matrices_beyond_caches(std::size_t bytes);

}  // namespace kintsugi::core::calibrate
