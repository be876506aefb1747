// Split kernels: the table of them, which has for each kind of element one kernel for each way to read an
// operand (Traversal), the choice of that way, and the launch parameters that follow from it.
#pragma once

#include <span>

#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/split/split_task.hpp"

namespace kintsugi::core::cuda {

// Way in which a kernel reads an operand.
enum class Traversal : std::uint8_t {
  tiles,          // by tiles of few vectors
  rows,           // whole rows
  columns,        // strips of columns, each in a cluster
  parts,          // parts of vectors that no thread block or cluster holds; ranges must be known
  short_vectors,  // groups of many short vectors
  streaming       // tiles that stream through shared memory; ranges must be known
};

struct KernelOfKind {
  ElementType type;
  ElementKind kind;
  KernelName rows;
  KernelName columns;
  KernelName parts;
  KernelName short_vectors;
  KernelName tiles;
  KernelName streaming{"", ""};
};

// Kind of element of the kernels that split by the rule.
ElementKind kind_of(const SplitRule& rule);

// Kernels for the split's kind of element; nullptr if there are none. `by_norms` asks for kernels that find
// norms.
const KernelOfKind* find_kernel(const DeviceSplit& split, bool by_norms);

// Kernel for a traversal. For kernel = nullptr it is the one that splits any operand by any rule.
const KernelName& kernel_name(const KernelOfKind* kernel, Traversal traversal);

// Number of threads that split one vector under Traversal::rows. `padded_length` is the number of elements of
// a vector in a slice.
std::int64_t threads_per_vector(std::int64_t padded_length);
// Number of threads that split one vector under Traversal::short_vectors.
std::int64_t threads_per_short_vector(std::int64_t padded_length);

// Number of elements to which a split pads vectors, and number of vectors, those of padding included.
std::int64_t padded_length_of(const DeviceSplit& split);
std::int64_t padded_vectors_of(const DeviceSplit& split);

// A split and its traversal through the operand.
struct SplitTraversal {
  const DeviceSplit* split;
  Traversal traversal;
  std::int64_t cluster = 0;          // thread blocks per cluster; 0: no clusters
  std::int64_t min_row_threads = 0;  // fewest threads per vector under Traversal::rows

  // Number of elements of a vector with which its slices are padded.
  std::int64_t stride() const { return padded_length_of(*split); }
  // Threads that split one vector under Traversal::rows.
  std::int64_t row_threads() const;
  // Fewest threads per block for this split.
  std::int64_t min_threads(const KernelOfKind* kernel) const;
  // Bytes of shared memory per thread block, and number of thread blocks, for `threads` threads per block.
  std::int64_t shared_bytes(const KernelOfKind& kernel, std::int64_t threads) const;
  std::int64_t blocks(const KernelOfKind* kernel, std::int64_t threads) const;
  // Vectors that the split writes: those of the operand, and vectors of padding that are read or share a
  // thread block with them.
  std::int64_t written_vectors() const;
  // Largest number of thread blocks of a launch. If it is less than blocks(), thread blocks loop over the
  // split. `conditional` is true if the kernel exits early unless its candidate was selected.
  std::int64_t max_launched(bool conditional) const;
  // Number of elements of a vector that a thread block splits, for traversals in which thread blocks may
  // share vectors.
  std::int64_t part_length() const;
  // True if several thread blocks share a vector once its range is known.
  bool shares_vectors() const;

 private:
  bool by_rows() const;
};

// Chooses the traversal. If a thread block or a cluster can hold whole vectors, the traversal reads the
// operand once.
SplitTraversal choose_traversal(const KernelOfKind* kernel, const DeviceSplit& split);

// Chooses the threads per block of one launch for these splits, and their threads per vector. The kernel may
// be nullptr.
std::int64_t choose_threads(const KernelOfKind* kernel, std::span<SplitTraversal> splits);

}  // namespace kintsugi::core::cuda
