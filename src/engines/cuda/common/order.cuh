// Kernels that begin while those before them end (PTX ISA: griddepcontrol; compute capability 9.0).
#pragma once

namespace kintsugi::core::cuda {

// Of a kernel that was named with awaits_others: every thread calls it before it touches the device's memory. The next such
// kernel may take multiprocessors as they get free from then on, where it waits for this one.
__device__ inline void await_others() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\ngriddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace kintsugi::core::cuda
