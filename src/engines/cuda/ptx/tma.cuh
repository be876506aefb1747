// Bulk copies of tiles into shared memory (PTX ISA: cp.async.bulk.tensor).
#pragma once

#include <cstdint>

#include "engines/cuda/ptx/barriers.cuh"

namespace kintsugi::core::cuda {

struct TensorMap;  // gemm/kernel_params.hpp

// Fetches a tensor map before its first use.
__device__ inline void prefetch(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Starts a copy of a box of one slice: 128 bytes along k of a number of rows that the tensor map sets. Its
// bytes count toward the barrier's phase.
__device__ inline void tma_load(std::uint32_t target, const TensorMap& map, const Mbarrier& barrier, int k,
                                int row, int slice) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
      "[%2];" ::"r"(target),
      "l"(&map), "r"(barrier.address()), "r"(k), "r"(row), "r"(slice)
      : "memory");
}

// Starts a copy of the box to the same address in several thread blocks of the cluster: those whose bits are
// set in `blocks`. Its bytes count toward the barrier at the same address of each of these thread blocks.
__device__ inline void tma_load_multicast(std::uint32_t target, const TensorMap& map, const Mbarrier& barrier,
                                          int k, int row, int slice, std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(target),
      "l"(&map), "r"(barrier.address()), "r"(k), "r"(row), "r"(slice), "h"(blocks)
      : "memory");
}

// Coordinates of a box in a tensor map of five dimensions.
struct BoxCoord {
  int x[5];
};

// tma_load_multicast() for a tensor map of five dimensions.
__device__ inline void tma_load_multicast(std::uint32_t target, const TensorMap& map, const Mbarrier& barrier,
                                          const BoxCoord& box, std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%3, %4, %5, %6, %7}], [%2], %8;" ::"r"(target),
      "l"(&map), "r"(barrier.address()), "r"(box.x[0]), "r"(box.x[1]), "r"(box.x[2]), "r"(box.x[3]),
      "r"(box.x[4]), "h"(blocks)
      : "memory");
}

}  // namespace kintsugi::core::cuda
