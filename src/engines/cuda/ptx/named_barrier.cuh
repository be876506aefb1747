// The sixteen named barriers of a thread block (PTX ISA: bar).
#pragma once

namespace kintsugi::core::cuda {

// Waits until `threads` threads have called this function or named_barrier_arrive() for this barrier.
__device__ inline void named_barrier_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ inline void named_barrier_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

}  // namespace kintsugi::core::cuda
