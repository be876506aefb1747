// Table of the split kernels.
#pragma once

#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/split/split_task.hpp"

namespace kintsugi::core::cuda {

// Ways through an operand, with a kernel for each kind of element. `parts`: for vectors that no thread block
// or cluster holds, with ranges that are known. `short_vectors`: for many vectors of few elements.
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

ElementKind kind_of(const SplitRule& rule);

// Kernels for the split's kind of element, or nullptr if there are none. `by_norms`: kernels that find norms.
const KernelOfKind* find_kernel(const DeviceSplit& split, bool by_norms);

const KernelName& kernel_name(const KernelOfKind* kernel, Traversal traversal);

}  // namespace kintsugi::core::cuda
