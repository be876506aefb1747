// Device memory with random numbers, and timing of steps that read them.
#pragma once

#include <cstdint>
#include <functional>

#include "base/cuda/owned.hpp"
#include "base/queue.hpp"
#include "engines/cuda/steps.hpp"

namespace kintsugi::core::calibrate {

class Workbench {
 public:
  // `quick`: times are medians of fewer repetitions.
  explicit Workbench(bool quick);

  // Fills the memory of matrices with random numbers in [-1, 1]: FP32 for f32 and c32, else FP64. Clears the
  // results.
  void fill(ElementType type);
  // Returns matrix `index`, where the memory is divided into matrices of `bytes` bytes. An index beyond the
  // last matrix wraps around.
  std::byte* matrix(std::size_t bytes, int index = 0) const;
  // Returns the memory for results, which has result_bytes bytes.
  std::byte* results() const { return results_.data(); }
  std::byte* scratch() const { return scratch_.data(); }

  // Returns the median time of a step in microseconds. step(queue, 0), step(queue, 1), ... are captured in a
  // graph. `expected`: a guess of the time in microseconds, which decides the number of repetitions.
  double microseconds(double expected, const std::function<void(const Queue&, int)>& step) const;

  // Returns the median time in microseconds of a copy of `bytes` bytes from the matrices to the results. The
  // copy is not captured in a graph, since the driver copies in another way there.
  double copy_microseconds(std::size_t bytes) const;

  static constexpr std::size_t matrix_bytes = std::size_t{1} << 30;  // memory of all matrices
  static constexpr std::size_t result_bytes = std::size_t{1} << 29;
  static constexpr std::size_t scratch_bytes = std::size_t{256} << 20;

 private:
  int rounds_;
  cuda::OwnedMemory matrices_, results_, scratch_;
  std::size_t filled_width_ = 0;  // bytes of a number in the memory of matrices; 0: it is not filled yet
};

// Returns the number of matrices of `bytes` bytes that together exceed every cache, at most 8.
int matrices_beyond_caches(std::size_t bytes);

}  // namespace kintsugi::core::calibrate
