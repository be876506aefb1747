// Groups of asynchronous copies (async_copy.cuh), for pipelines of several stages.
#pragma once

#include "engines/cuda/ptx/async_copy.cuh"

namespace kintsugi::core::cuda {

// Makes a group of the copies that this thread has begun since the last call.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Returns when at most the last `groups` groups of this thread are incomplete.
template <int groups>
__device__ void await_copies_but() {
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}

}  // namespace kintsugi::core::cuda
