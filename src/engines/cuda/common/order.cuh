// Kernels that begin while those before them end (PTX ISA: griddepcontrol; compute capability 9.0).
#pragma once

namespace kintsugi::core::cuda {

// The next kernel that was named with awaits_others may take multiprocessors as they get free from then on.
__device__ inline void let_next_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// All that was launched before has ended, and what it wrote is there.
__device__ inline void await_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Of a block that has nothing to do, and knows without waiting: but for one they make room. What comes behind the kernel
// still comes behind all that was before it.
__device__ inline void leave_in_order() {
  let_next_begin();
  if (blockIdx.x == 0 && blockIdx.y == 0) await_previous();
}

// Of a kernel that was named with awaits_others: every thread calls it before it touches the device's memory.
__device__ inline void await_others() {
  let_next_begin();
  await_previous();
}

}  // namespace kintsugi::core::cuda
