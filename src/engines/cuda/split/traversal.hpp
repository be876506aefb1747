// The choice of a split's kernel: by the kind of its elements, and by the way in which the kernel reads the
// operand (Traversal). The launch parameters follow from both.
#pragma once

#include <span>

#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/split/split_task.hpp"

namespace kintsugi::core::cuda {

// Way in which a kernel reads an operand.
enum class Traversal : std::uint8_t {
  rows,           // whole vectors whose elements are contiguous, each in a thread block
  columns,        // strips of adjacent vectors, each in a cluster
  short_vectors,  // groups of many short vectors
  parts,          // parts of vectors that no thread block or cluster holds; ranges must be known
  streaming,      // tiles of any vectors that stream through shared memory; ranges must be known
  tiles           // tiles of few vectors, in any layout; for all that has no other kernel
};

// Kernels of a kind of element; nullptr where there is none.
struct KernelsOfKind {
  ElementType type;
  ElementKind kind;
  const KernelName* rows;
  const KernelName* columns;
  const KernelName* short_vectors;
  const KernelName* parts;
  const KernelName* streaming;
  const KernelName* tiles;

  std::int64_t element_bytes() const { return type == ElementType::f32 ? 4 : 8; }
  bool finds_norms() const { return kind == ElementKind::residues_by_norms; }
  // True if rows have no kernel of their own: those of columns, which also split rows, need clusters.
  bool rows_need_clusters() const { return rows == columns; }
};

// Kind of elements that are split by the rule.
ElementKind kind_of(const SplitRule& rule);

// Kernels for the split's kind of element. `by_norms` asks for kernels that find norms.
const KernelsOfKind& find_kernels(const DeviceSplit& split, bool by_norms);
// Kernels that split elements of any type by any rule.
const KernelsOfKind& kernel_by_rule();

// A split, its kernels, and its traversal through the operand.
struct SplitTraversal {
  const DeviceSplit* split;
  const KernelsOfKind* kernel;
  Traversal traversal;
  std::int64_t cluster = 0;          // thread blocks per cluster; 0: no clusters
  std::int64_t min_row_threads = 0;  // fewest threads per vector under Traversal::rows

  const KernelName& kernel_name() const;
  // SplitTask::kind.
  ElementKind kind() const;
  // Number of elements of a vector with which its slices are padded.
  std::int64_t stride() const { return split->slices.vector_stride(); }
  // Threads that split one vector, if thread blocks hold whole vectors; else 0.
  std::int64_t vector_threads() const;
  // Fewest threads per block for this split.
  std::int64_t min_threads() const;
  // Bytes of shared memory per thread block, and number of thread blocks, for `threads` threads per block.
  std::int64_t shared_bytes(std::int64_t threads) const;
  std::int64_t blocks(std::int64_t threads) const;
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
  bool by_rows() const { return split->side.matrix.column_stride == 1; }
};

// Chooses the traversal. If a thread block or a cluster can hold whole vectors, the traversal reads the
// operand once.
SplitTraversal choose_traversal(const KernelsOfKind& kernel, const DeviceSplit& split);

// Chooses the threads per block of one launch for these splits, and their threads per vector.
std::int64_t choose_threads(std::span<SplitTraversal> splits);

}  // namespace kintsugi::core::cuda
