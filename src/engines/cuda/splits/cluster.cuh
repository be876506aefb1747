// Blocks of one cluster, by the instructions that there are for them (PTX ISA, compute capability 9.0).
#pragma once

#include <cstdint>

namespace kintsugi::core::cuda {

__device__ inline int block_in_cluster() {
  int rank = 0;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ inline int blocks_in_cluster() {
  int blocks = 0;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  return blocks;
}

// All threads arrive, and behind the wait all blocks have begun; what was written before, but for mailboxes that were
// opened, nobody need see (a release waits for all writes to the device's memory).
__device__ inline void arrive_at_cluster() { asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory"); }
// Behind reads, too, of what the others will overwrite once they have waited.
__device__ inline void arrive_at_cluster_after_reads() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}
__device__ inline void await_cluster() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

// Where messages of all blocks are counted, in shared memory; used once.
class Mailbox {
 public:
  // By one thread, before it arrives at the cluster.
  __device__ void open() {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(
                     shared_address(&state_))
                 : "memory");
  }
  // By one thread, behind a barrier of the block after open(); messages may be there already.
  __device__ void expect(unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&state_)),
                 "r"(bytes)
                 : "memory");
  }
  // All bytes are there, and to be seen by this thread.
  __device__ void wait() const {
    asm volatile(
        "{\n.reg .pred done;\nagain:\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], 0;\n"
        "@done bra ready;\nbra again;\nready:\n}" ::"r"(shared_address(&state_))
        : "memory");
  }
  // What `target` is to become in that block, whose mailbox gets the bytes.
  template <class T>
  __device__ void send(const T& message, const T& target, unsigned block) const {
    static_assert(sizeof(T) % sizeof(uint4) == 0);
    uint4 words[sizeof(T) / sizeof(uint4)];
    memcpy(words, &message, sizeof(T));
    const std::uint32_t address = in_block(shared_address(&target), block);
    const std::uint32_t box = in_block(shared_address(&state_), block);
#pragma unroll
    for (unsigned i = 0; i < sizeof(T) / sizeof(uint4); ++i) {
      asm volatile(
          "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::
              "r"(address + i * static_cast<unsigned>(sizeof(uint4))),
          "r"(words[i].x), "r"(words[i].y), "r"(words[i].z), "r"(words[i].w), "r"(box)
          : "memory");
    }
  }

 private:
  __device__ static std::uint32_t shared_address(const void* pointer) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
  }
  // The same place in another block's shared memory.
  __device__ static std::uint32_t in_block(std::uint32_t address, unsigned block) {
    std::uint32_t result = 0;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(result) : "r"(address), "r"(block));
    return result;
  }

  std::uint64_t state_;
};

}  // namespace kintsugi::core::cuda
