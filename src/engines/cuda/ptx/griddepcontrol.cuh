// Programmatic dependent launch: a kernel starts while the kernels before it finish (PTX ISA: griddepcontrol;
// compute capability 9.0). Code for less than 9.0 has no such instructions and is launched without the
// attribute (launch.cpp).
#pragma once

namespace kintsugi::core::cuda {

// Lets the next kernel start on SMs as they become free. It takes effect if the next kernel was launched with
// programmatic stream serialization.
__device__ inline void launch_dependents() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Returns when all kernels before this one have finished and their writes are visible to this kernel.
__device__ inline void grid_dependency_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Early exit of a kernel that need not run and knows this before its grid-dependency wait. One thread block
// waits, so that the next kernel still starts after all kernels before this one.
__device__ inline void exit_in_stream_order() {
  launch_dependents();
  if (blockIdx.x == 0 && blockIdx.y == 0) grid_dependency_wait();
}

// Begins a kernel that may overlap others. Every thread must call it before its first access to device
// memory.
__device__ inline void begin_dependent_kernel() {
  launch_dependents();
  grid_dependency_wait();
}

}  // namespace kintsugi::core::cuda
