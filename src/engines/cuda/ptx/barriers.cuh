// Barriers of threads of a thread block or of a cluster (PTX ISA: mbarrier, bar, barrier.cluster).
#pragma once

#include <cstdint>

#include "engines/cuda/ptx/shared_memory.cuh"

namespace kintsugi::core::cuda {

// Barrier in shared memory, in phases. A phase completes when all expected arrivals have happened and all
// announced bytes have arrived.
class Mbarrier {
 public:
  __device__ void initialise(unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(arrivals));
  }
  // Makes initialised barriers visible to other thread blocks of the cluster and to asynchronous copies.
  __device__ static void fence_initialisation() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  // Returns when the phase with this parity has completed. Phases have parity 0, 1, 0, 1, ...
  __device__ void wait(unsigned parity) const {
    asm volatile(
        "{\n.reg .pred done;\nagain:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra ready;\nbra again;\nready:\n}" ::
            "r"(address()),
        "r"(parity)
        : "memory");
  }
  // wait() that also makes visible what other thread blocks of the cluster wrote before their arrivals.
  __device__ void wait_cluster(unsigned parity) const {
    asm volatile(
        "{\n.reg .pred done;\nagain:\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
        "@done bra ready;\nbra again;\nready:\n}" ::"r"(address()),
        "r"(parity)
        : "memory");
  }
  // Arrives, and announces the bytes of asynchronous copies for which the phase must wait.
  __device__ void arrive_expect_tx(unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes)
                 : "memory");
  }
  __device__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory");
  }
  // Arrives when all cp.async copies that this thread has begun are complete.
  __device__ void arrive_after_copies() {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(address()) : "memory");
  }
  // Arrives at the same barrier of another thread block of the cluster: data that this thread has read may be
  // overwritten. The arrival does not make this thread's writes visible to the other thread block, since that
  // would wait for all writes to device memory.
  __device__ void arrive_remote(unsigned block) {
    asm volatile(
        "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(address()),
        "r"(block)
        : "memory");
  }
  __device__ std::uint32_t address() const { return shared_address(&state_); }

 private:
  std::uint64_t state_;
};

// The sixteen named barriers of a thread block (PTX ISA: bar).

// Waits until `threads` threads have called this function or named_barrier_arrive() for this barrier.
__device__ inline void named_barrier_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ inline void named_barrier_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// Thread blocks of one cluster (PTX ISA: barrier.cluster, mapa; compute capability 9.0).

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
