// Barriers in shared memory that count arrivals and bytes (PTX ISA: mbarrier).
#pragma once

#include <cstdint>

#include "engines/cuda/ptx/shared_memory.cuh"

namespace kintsugi::core::cuda {

// Barrier in phases. A phase completes when all expected arrivals have happened and all announced bytes have
// arrived.
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

}  // namespace kintsugi::core::cuda
