// Which kernel splits what.
#pragma once

#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/split/split_task.hpp"

namespace kintsugi::core::cuda {

// The kernels that there are, one of each way through an operand for each kind of element. `parts`: vectors
// that no block or cluster holds, with ranges that are known. `short_vectors`: many of few elements.
enum class Way : std::uint8_t { tiles, rows, columns, parts, short_vectors };

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

// nullptr: no kernel has this kind of element. `by_norms`: one that finds norms.
const KernelOfKind* find_kernel(const DeviceSplit& split, bool by_norms);

const KernelName& kernel_name(const KernelOfKind* kernel, Way way);

}  // namespace kintsugi::core::cuda
