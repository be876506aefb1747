// Warp-specialized kernels: one warpgroup loads tiles, the others multiply them.
#pragma once

#include <cstdint>

#include "engines/cuda/gemm/kernel_params.hpp"
#include "engines/cuda/ptx/barriers.cuh"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/ptx/tma.cuh"

namespace kintsugi::core::cuda {

inline constexpr int warpgroup = 128;  // threads of a warpgroup

// Returns the value of lane 0. The shuffle tells the compiler that all lanes of the warp have the same value.
__device__ inline int uniform(int value) { return __shfl_sync(~0U, value, 0); }

// Returns threadIdx.x. Every call reads it anew, so that it occupies no register while accumulators need all
// of them.
__device__ inline int thread_number() {
  int number;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(number));
  return number;
}

__device__ inline int cluster_index() { return static_cast<int>(blockIdx.x) / gemm_cluster_size; }

// Numbers the clusters in the order in which they begin. Sets `number`, which must be in shared memory, to
// the number of this cluster. A cluster that only waits for lower numbers waits for clusters that are
// resident or have ended; with blockIdx in place of the number it might not. `begun` counts the clusters. It
// is 0 again after the last cluster, since the kernels of all candidates share it. All threads must call the
// function together.
__device__ inline void number_cluster(int& number, std::uint32_t* begun) {
  if (threadIdx.x == 0 && block_rank_in_cluster() == 0) {
    const std::uint32_t next = atomicInc(begun, gridDim.x / gemm_cluster_size - 1);
#pragma unroll
    for (int block = 0; block < gemm_cluster_size; ++block) {
      asm volatile(
          "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
          "st.shared::cluster.u32 [remote], %2;\n}" ::"r"(shared_address(&number)),
          "r"(block), "r"(next)
          : "memory");
    }
  }
  cluster_sync();
}

// First address in dynamic shared memory with the alignment that tiles with 128-byte swizzle need.
__device__ inline std::uint32_t aligned_tiles(const void* memory) {
  return (shared_address(memory) + 1023) / 1024 * 1024;
}

// Initializes the barriers of the cluster and waits for the kernels before this one.
template <class SharedStorage>
__device__ void begin_cluster(SharedStorage& shared) {
  if (threadIdx.x == 0) {
    shared.initialise();
    Mbarrier::fence_initialisation();
  }
  cluster_sync();
  grid_dependency_wait();
  launch_dependents();
}

// Calls produce() in the first warpgroup and consume() in the others, with the numbers of registers per
// thread that Config sets.
template <class Config, class Produce, class Consume>
__device__ void specialize_warpgroups(const Produce& produce, const Consume& consume) {
  if (threadIdx.x < warpgroup) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Config::producer_registers));
    produce();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Config::consumer_registers));
    consume();
  }
  cluster_sync();  // until then the other thread block may arrive at this one's barriers
}

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

// A warpgroup's sums in device memory, in the order in which the warpgroup's threads hold them.

template <int Count>
__device__ void save_sums(float4* memory, const float (&sums)[Count], int thread) {
#pragma unroll
  for (int i = 0; i < Count / 4; ++i)
    memory[i * warpgroup + thread] = {sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]};
}

// Calls use(sum, stored sum) for each sum.
template <int Count, class Use>
__device__ void read_sums(const float4* memory, float (&sums)[Count], int thread, const Use& use) {
#pragma unroll
  for (int i = 0; i < Count / 4; ++i) {
    const float4 four = __ldcg(memory + i * warpgroup + thread);
    use(sums[4 * i], four.x);
    use(sums[4 * i + 1], four.y);
    use(sums[4 * i + 2], four.z);
    use(sums[4 * i + 3], four.w);
  }
}

}  // namespace kintsugi::core::cuda
