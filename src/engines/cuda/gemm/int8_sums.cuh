// Sums of the int8 GEMM kernels: which groups are computed, where their sums lie, and how they are reduced.
#pragma once

#include <cstdint>

#include "arith/residue/sum_reduction.hpp"
#include "engines/cuda/common/condition.cuh"
#include "engines/cuda/gemm/int8_tiles.hpp"

namespace kintsugi::core::cuda {

// Sums of a group in device memory. Rows and columns are multiples of 16.
template <class T>
struct GroupSums {
  T* data;
  std::int64_t rows;
  std::int64_t columns;

  __device__ GroupSums(const Int8Params& params, int group)
      : data(reinterpret_cast<T*>(params.sums) + group * params.rows * params.columns), rows(params.rows),
        columns(params.columns) {}
};

// Tables of reductions in constant memory.
__constant__ const auto device_int32_reductions = int32_reductions;
__constant__ const auto device_int25_reductions = int25_reductions;

// Number of groups that the kernel computes; 0 if it must exit because its candidate is not selected.
__device__ inline int selected_groups(const Int8Params& params) {
  if (params.selected.selection != nullptr) return selected_moduli(params.selected);
  return holds(params.condition) ? params.schedule.items : 0;
}

}  // namespace kintsugi::core::cuda
