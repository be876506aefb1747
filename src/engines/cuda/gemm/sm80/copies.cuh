// Copies to shared memory that depend on a condition.
#pragma once

#include <cstdint>

namespace kintsugi::core::cuda {

// Starts a copy of sixteen bytes if the condition holds (PTX ISA: cp.async); the L2 cache loads the whole
// line of 128 bytes. There is no branch.
__device__ inline void copy_16_bytes_if(bool condition, std::uint32_t target, const void* source) {
  asm volatile(
      "{\n.reg .pred starts;\nsetp.ne.b32 starts, %0, 0;\n"
      "@starts cp.async.cg.shared.global.L2::128B [%1], [%2], 16;\n}" ::"r"(condition ? 1 : 0),
      "r"(target), "l"(source)
      : "memory");
}

}  // namespace kintsugi::core::cuda
