// Table of the split kernels: for each kind of element one kernel for each way to read an operand.
#pragma once

#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/split/split_task.hpp"

namespace kintsugi::core::cuda {

// Way in which a kernel reads an operand: by tiles of few vectors, by whole rows, by panels of columns in
// clusters, by parts of vectors that no thread block or cluster holds (with ranges that are known), or by
// groups of many short vectors.
enum class Traversal : std::uint8_t { tiles, rows, columns, parts, short_vectors };

struct KernelOfKind {
  ElementType type;
  ElementKind kind;
  KernelName rows;
  KernelName columns;
  KernelName parts;
  KernelName short_vectors;
  KernelName tiles;
};

// Kind of element whose kernels split by the rule.
ElementKind kind_of(const SplitRule& rule);

// Kernels for the split's kind of element, or nullptr if there are none. `by_norms`: kernels that find norms.
const KernelOfKind* find_kernel(const DeviceSplit& split, bool by_norms);

// Kernel for a traversal; for kernel = nullptr the one that splits any operand by any rule.
const KernelName& kernel_name(const KernelOfKind* kernel, Traversal traversal);

}  // namespace kintsugi::core::cuda
