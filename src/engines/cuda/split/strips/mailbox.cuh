// Messages between the thread blocks of a cluster (PTX ISA: st.async).
#pragma once

#include <cstdint>

#include "engines/cuda/ptx/cluster.cuh"
#include "engines/cuda/ptx/mbarrier.cuh"

namespace kintsugi::core::cuda {

// Barrier in shared memory for one exchange of messages. It counts the bytes of the messages that the thread
// blocks of the cluster send to this one.
class Mailbox {
 public:
  // Initializes the barrier. One thread must call it, before that thread arrives at the cluster's barrier.
  __device__ void initialise() {
    barrier_.initialise(1);
    Mbarrier::fence_initialisation();
  }
  // Sets the number of bytes for which wait() waits. One thread must call it, after a barrier of the thread
  // block that follows initialise(). Messages may have arrived before.
  __device__ void expect(unsigned bytes) { barrier_.arrive_expect_tx(bytes); }
  // Returns when all bytes have arrived and are visible to this thread.
  __device__ void wait() const { barrier_.wait_cluster(0); }
  // Stores `message` to the shared variable `target` of thread block `block` of the cluster. The mailbox of
  // that thread block counts the bytes.
  template <class T>
  __device__ void send(const T& message, const T& target, unsigned block) const {
    static_assert(sizeof(T) % sizeof(uint4) == 0);
    uint4 words[sizeof(T) / sizeof(uint4)];
    memcpy(words, &message, sizeof(T));
    const std::uint32_t address = map_to_block(shared_address(&target), block);
    const std::uint32_t barrier = map_to_block(barrier_.address(), block);
#pragma unroll
    for (unsigned i = 0; i < sizeof(T) / sizeof(uint4); ++i) {
      asm volatile(
          "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::
              "r"(address + i * static_cast<unsigned>(sizeof(uint4))),
          "r"(words[i].x), "r"(words[i].y), "r"(words[i].z), "r"(words[i].w), "r"(barrier)
          : "memory");
    }
  }

 private:
  Mbarrier barrier_;
};

}  // namespace kintsugi::core::cuda
