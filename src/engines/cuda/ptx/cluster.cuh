// Thread blocks of one cluster (PTX ISA: barrier.cluster, mapa; compute capability 9.0).
#pragma once

#include <cstdint>

namespace kintsugi::core::cuda {

__device__ inline int block_rank_in_cluster() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ inline int cluster_size() {
  int blocks;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  return blocks;
}

// Returns the address of the same shared variable in another thread block of the cluster.
__device__ inline std::uint32_t map_to_block(std::uint32_t address, unsigned block) {
  std::uint32_t result;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(result) : "r"(address), "r"(block));
  return result;
}

// Arrival of all threads at the cluster's barrier. The relaxed form makes no writes visible to other thread
// blocks; therefore it does not wait for writes to device memory. The release form makes writes visible. It
// also orders this thread block's reads before all writes that other thread blocks make after their wait.
__device__ inline void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}
__device__ inline void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

// Barrier of all threads of all thread blocks of the cluster. The threads of each warp must be converged.
__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

}  // namespace kintsugi::core::cuda
