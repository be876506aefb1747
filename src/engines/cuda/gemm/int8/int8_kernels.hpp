// int8 GEMM kernels of an architecture.
#pragma once

#include "engines/cuda/common/launch.hpp"

namespace kintsugi::core::cuda {

struct Int8Kernels {
  KernelName residues;        // sums are reduced modulo the groups' moduli
  KernelName short_residues;  // the same for sums in the range SumRange::int25
  KernelName integers;        // sums are 64-bit integers
};

}  // namespace kintsugi::core::cuda
