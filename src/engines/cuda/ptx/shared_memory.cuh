// Addresses in shared memory, and loads from them.
#pragma once

#include <cstdint>

namespace kintsugi::core::cuda {

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ inline float load_shared(std::uint32_t address) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}
// Loads four numbers from an address that is a multiple of 16.
__device__ inline void load_shared(std::uint32_t address, float* four) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(four[0]), "=f"(four[1]), "=f"(four[2]), "=f"(four[3])
               : "r"(address)
               : "memory");
}

// Loads four matrices of 8 x 8 elements of two bytes, transposed (PTX ISA: ldmatrix.trans). Lane 8 m + r
// gives the address of row r of matrix m, eight elements. Word m of lane l gets elements l / 4 of rows 2 (l
// % 4) and 2 (l % 4) + 1 of matrix m.
__device__ inline void load_transposed(std::uint32_t address, std::uint32_t (&words)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(address)
               : "memory");
}

}  // namespace kintsugi::core::cuda
