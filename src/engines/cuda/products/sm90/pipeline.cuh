// Copies of tiles into shared memory, and the barriers by which producers and consumers of tiles wait for each other
// (PTX ISA: mbarrier, cp.async.bulk.tensor, cluster).
#pragma once

#include <cstdint>

#include "engines/cuda/common/order.cuh"
#include "engines/cuda/products/sm90/arguments.hpp"

namespace kintsugi::core::cuda {

inline constexpr int warpgroup = 128;  // threads that multiply together

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// One phase after the other: each ends when so many have arrived and all bytes that were announced are there.
class Barrier {
 public:
  __device__ void initialise(unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&state_)), "r"(arrivals));
  }
  __device__ void wait(unsigned parity) const {
    asm volatile(
        "{\n.reg .pred done;\nagain:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra ready;\nbra again;\nready:\n}" ::
            "r"(shared_address(&state_)),
        "r"(parity)
        : "memory");
  }
  __device__ void arrive_expecting(unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&state_)),
                 "r"(bytes)
                 : "memory");
  }
  __device__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&state_)) : "memory");
  }
  // At the same barrier of that block of the cluster. Releases nothing beyond the block (that would wait for all
  // writes to the device's memory): what was read by then may be overwritten, no more.
  __device__ void arrive_in(unsigned block) {
    asm volatile(
        "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(shared_address(&state_)),
        "r"(block)
        : "memory");
  }

  std::uint64_t state_;
};

// A box of rows x 128 bytes of a slice.
__device__ inline void copy_tile(std::uint32_t target, const TensorMap& map, Barrier& barrier, int k, int row,
                                 int slice) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
      "[%2];" ::"r"(target),
      "l"(&map), "r"(shared_address(&barrier)), "r"(k), "r"(row), "r"(slice)
      : "memory");
}

// To the same place in every block of the cluster, whose barriers get the bytes.
__device__ inline void copy_tile_to_all(std::uint32_t target, const TensorMap& map, Barrier& barrier, int k,
                                        int row, int slice, std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(target),
      "l"(&map), "r"(shared_address(&barrier)), "r"(k), "r"(row), "r"(slice), "h"(blocks)
      : "memory");
}

// The same in all threads of a warp, for the compiler too.
__device__ inline int uniform(int value) { return __shfl_sync(~0U, value, 0); }

// threadIdx.x, read anew: no register keeps it while others hold sums.
__device__ inline int thread_number() {
  int number;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(number));
  return number;
}

__device__ inline int block_in_cluster() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ inline int cluster_number() { return static_cast<int>(blockIdx.x) / blocks_of_cluster; }

__device__ inline void synchronise_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Numbers this cluster among those that have begun, which `begun` counts; by all threads together. `number` is in shared
// memory. A cluster that waits only for lower numbers waits for clusters that are resident or have ended, which the
// numbers of blockIdx do not promise.
__device__ inline void number_cluster(int& number, std::uint32_t* begun) {
  if (threadIdx.x == 0 && block_in_cluster() == 0) {
    const std::uint32_t next = atomicAdd(begun, 1U);
#pragma unroll
    for (int block = 0; block < blocks_of_cluster; ++block) {
      asm volatile(
          "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
          "st.shared::cluster.u32 [remote], %2;\n}" ::"r"(shared_address(&number)),
          "r"(block), "r"(next)
          : "memory");
    }
  }
  synchronise_cluster();
}

// Where a kernel's tiles begin in dynamic shared memory: 128-byte swizzle asks for it.
__device__ inline std::uint32_t aligned_tiles(const void* memory) {
  return (shared_address(memory) + 1023) / 1024 * 1024;
}

// Barriers of both blocks of threads are there, and what kernels before this one wrote: for those behind it too, as soon as
// they begin.
template <class Shared>
__device__ void begin_cluster(Shared& shared) {
  if (threadIdx.x == 0) {
    shared.initialise();
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  synchronise_cluster();
  await_previous();
  let_next_begin();
}

// The first warpgroup produces, the others consume, with the registers that each needs.
template <class Config, class Produce, class Consume>
__device__ void divide_work(const Produce& produce, const Consume& consume) {
  if (threadIdx.x < warpgroup) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Config::producer_registers));
    produce();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Config::consumer_registers));
    consume();
  }
  synchronise_cluster();  // no block's barriers go before the other's arrivals
}

// Of `threads` threads that meet at one of the block's sixteen barriers.
__device__ inline void meet(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// The same without waiting for the others.
__device__ inline void arrive_at(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

}  // namespace kintsugi::core::cuda
