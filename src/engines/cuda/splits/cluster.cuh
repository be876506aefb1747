// Blocks of one cluster, by the instructions that there are for them (PTX ISA, compute capability 9.0).
#pragma once

#include <cstdint>

namespace kintsugi::core::cuda {

__device__ inline unsigned block_in_cluster() {
  unsigned rank = 0;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ inline unsigned blocks_of_cluster() {
  unsigned count = 0;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
  return count;
}

// What threads wrote before they arrived, shared memory included, all threads of the cluster see behind the wait.
__device__ inline void arrive_at_cluster() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
__device__ inline void await_cluster() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
__device__ inline void synchronize_cluster() {
  arrive_at_cluster();
  await_cluster();
}

// The same variable of another block, in its shared memory.
template <class T>
__device__ const T* of_block(const T* variable, unsigned block) {
  std::uint64_t address = 0;
  asm("mapa.u64 %0, %1, %2;" : "=l"(address) : "l"(reinterpret_cast<std::uint64_t>(variable)), "r"(block));
  return reinterpret_cast<const T*>(address);
}

}  // namespace kintsugi::core::cuda
