// Choice of the way in which a split kernel reads its operand (Traversal), and the launch parameters that
// follow.
#pragma once

#include "engines/cuda/split/split_kernels.hpp"

namespace kintsugi::core::cuda {

// Number of threads that split one vector under Traversal::rows. `padded_length`: elements of the vector in a
// slice.
std::int64_t threads_per_vector(std::int64_t padded_length);
// Number of threads that split one vector under Traversal::short_vectors.
std::int64_t threads_per_short_vector(std::int64_t padded_length);

// A split and its traversal through the operand.
struct SplitTraversal {
  const DeviceSplit* split;
  Traversal traversal;
  std::int64_t cluster = 0;  // thread blocks per cluster; 0: no clusters

  std::int64_t stride() const { return split->slices.vector_stride(); }
  // Fewest threads per block for this split. A launch for both operands has the larger of their numbers.
  std::int64_t min_threads(const KernelOfKind* kernel) const;
  // Shared memory per thread block, and number of thread blocks, with `threads` threads per block.
  std::int64_t shared_bytes(const KernelOfKind& kernel, std::int64_t threads) const;
  std::int64_t blocks(const KernelOfKind* kernel, std::int64_t threads) const;
  // Most thread blocks of a launch; fewer than blocks() then loop over all of the split. `conditional`: the
  // kernel exits early unless its candidate was selected.
  std::int64_t max_launched(bool conditional) const;
  // Elements of a vector that a thread block splits, for traversals under which thread blocks may share
  // vectors.
  std::int64_t part_length() const;
  // True if, with known ranges, several thread blocks share a vector.
  bool shares_vectors() const;

 private:
  bool by_rows() const;
};

// Chooses the traversal: one that reads the operand once, if a thread block or a cluster can hold whole
// vectors.
SplitTraversal choose_traversal(const KernelOfKind* kernel, const DeviceSplit& split);

}  // namespace kintsugi::core::cuda
