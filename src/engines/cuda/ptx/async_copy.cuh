// Copies of single elements into shared memory without a register (PTX ISA: cp.async).
#pragma once

#include <cstdint>

namespace kintsugi::core::cuda {

// Eight bytes; zeros where `exists` is false, and nothing is read.
__device__ inline void copy_8_bytes(std::uint32_t target, const void* source, bool exists) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(target), "l"(source), "r"(exists ? 8 : 0)
               : "memory");
}

// Sixteen bytes of a source that is aligned to them.
__device__ inline void copy_16_bytes(std::uint32_t target, const void* source, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source),
               "r"(exists ? 16 : 0)
               : "memory");
}

// Returns when all copies that this thread has begun are complete.
__device__ inline void await_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace kintsugi::core::cuda
