// Table of the split kernels. For each kind of element there is one kernel for each way to read an operand.
#pragma once

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
// norms; that of a rule with `strassen` also splits with known ranges.
const KernelOfKind* find_kernel(const DeviceSplit& split, bool by_norms);

// True if there is a kernel that splits elements of the type into the residues of a step of Strassen's
// algorithm. `rule` is the one for that step, or the one without it.
bool splits_for_strassen(ElementType type, const SplitRule& rule);

// Kernel for a traversal. For kernel = nullptr it is the one that splits any operand by any rule.
const KernelName& kernel_name(const KernelOfKind* kernel, Traversal traversal);

}  // namespace kintsugi::core::cuda
