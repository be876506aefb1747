// Ways of a split through its operand: whole rows, panels of columns in clusters, parts of either where they
// are too long for that, or tiles.
#pragma once

#include "engines/cuda/split/split_kernels.hpp"

namespace kintsugi::core::cuda {

// Threads of a vector whose elements are contiguous.
std::int64_t threads_of_vector(std::int64_t stride);
// As threads_of_vector(), for short vectors.
std::int64_t threads_of_short_vector(std::int64_t stride);

// A split and its traversal through the operand.
struct SplitTraversal {
  const DeviceSplit* split;
  Traversal traversal;
  std::int64_t cluster = 0;  // thread blocks per cluster; 0: no clusters

  std::int64_t stride() const { return split->slices.vector_stride(); }
  // Threads per block that this split needs, whatever the other operand needs.
  std::int64_t min_threads(const KernelOfKind* kernel) const;
  std::int64_t shared_bytes(const KernelOfKind& kernel, std::int64_t threads) const;
  std::int64_t blocks(const KernelOfKind* kernel, std::int64_t threads) const;
  // Largest number of thread blocks in a launch, which then loop over all of the split.
  std::int64_t max_launched(bool conditional) const;
  // Elements of a vector that a thread block splits, for ways that may divide vectors.
  std::int64_t part_length() const;
  // True if vectors are divided once their ranges are known.
  bool divides_vectors() const;

 private:
  bool by_rows() const;
};

// Chooses the way: one that reads the operand once, if a thread block or a cluster can hold a vector.
SplitTraversal choose_traversal(const KernelOfKind* kernel, const DeviceSplit& split);

}  // namespace kintsugi::core::cuda
