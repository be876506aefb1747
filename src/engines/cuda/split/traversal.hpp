// Orders in which a split kernel reads its operand: by whole rows, by panels of columns (one per cluster), by
// parts of rows or panels that are too long for that, or by tiles.
#pragma once

#include "engines/cuda/split/split_kernels.hpp"

namespace kintsugi::core::cuda {

// Number of threads that split one vector whose elements are contiguous; `padded_length`: elements of the
// vector in a slice.
std::int64_t threads_per_vector(std::int64_t padded_length);
// Like threads_per_vector(), for short vectors.
std::int64_t threads_per_short_vector(std::int64_t padded_length);

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
  // Elements of a vector that a thread block splits, for traversals that may share vectors.
  std::int64_t part_length() const;
  // True if, with known ranges, several thread blocks share a vector.
  bool shares_vectors() const;

 private:
  bool by_rows() const;
};

// Chooses the traversal: one that reads the operand once, if a thread block or a cluster can hold a vector.
SplitTraversal choose_traversal(const KernelOfKind* kernel, const DeviceSplit& split);

}  // namespace kintsugi::core::cuda
