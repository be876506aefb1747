// Order in which the two consumer warpgroups of a thread block issue wgmma.
#pragma once

#include "engines/cuda/gemm/warp_specialization.cuh"

namespace kintsugi::core::cuda {

inline constexpr int consumers = 2;  // number of consumer warpgroups

// Order barriers let the consumer warpgroups issue wgmma in turn. While the instructions of one warpgroup
// run, the other warpgroup adds its accumulators to its sums, so the tensor cores are always busy. Without
// this order both warpgroups would end at the same time, and the tensor cores would be idle while both add.
inline constexpr int first_order_barrier = 1;  // named barrier 0 is that of __syncthreads()
inline constexpr int first_warpgroup_barrier = first_order_barrier + consumers;

// Waits for the turn of this warpgroup.
__device__ inline void order_barrier_wait(int consumer) {
  named_barrier_sync(first_order_barrier + consumer, consumers * warpgroup);
}
// Ends the turn of this warpgroup and begins the turn of the other one.
__device__ inline void order_barrier_arrive(int consumer) {
  named_barrier_arrive(first_order_barrier + (consumer + 1) % consumers, consumers * warpgroup);
}

}  // namespace kintsugi::core::cuda
