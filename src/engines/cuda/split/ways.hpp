// How a split goes through its operand: by whole rows, by panels of columns in clusters, by parts of either
// where they are too long for that, or by tiles.
#pragma once

#include "engines/cuda/split/split_kernels.hpp"

namespace kintsugi::core::cuda {

// So many threads has a vector whose elements lie beside each other.
std::int64_t threads_of_vector(std::int64_t stride);
// The same of short vectors.
std::int64_t threads_of_short_vector(std::int64_t stride);

// A split on its way through the operand.
struct WaySplit {
  const DeviceSplit* split;
  Way way;
  std::int64_t cluster = 0;  // blocks of one, where they have clusters

  std::int64_t stride() const { return split->slices.vector_stride(); }
  // Of a block by itself, whatever the other operand needs.
  std::int64_t least_threads(const KernelOfKind* kernel) const;
  std::int64_t shared_bytes(const KernelOfKind& kernel, std::int64_t threads) const;
  std::int64_t blocks(const KernelOfKind* kernel, std::int64_t threads) const;
  // Blocks of a launch at most, which then go through all that they are to split.
  std::int64_t most_launched(bool conditional) const;
  // Elements of a vector that a block splits, of ways that may divide vectors.
  std::int64_t part_length() const;
  // Whether vectors are divided once their ranges are known.
  bool divides_vectors() const;

 private:
  bool by_rows() const;
};

// One read of the operand where a block or a cluster can hold a vector.
WaySplit way_of(const KernelOfKind* kernel, const DeviceSplit& split);

}  // namespace kintsugi::core::cuda
