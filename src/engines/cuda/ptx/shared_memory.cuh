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

// Loads four matrices of 8 x 8 elements of two bytes (PTX ISA: ldmatrix). Lane 8 m + r gives the address of
// row r of matrix m, eight elements. Word m of lane l gets elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4
// of matrix m.
__device__ inline void load_matrices(std::uint32_t address, std::uint32_t& word_0, std::uint32_t& word_1,
                                     std::uint32_t& word_2, std::uint32_t& word_3) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(word_0), "=r"(word_1), "=r"(word_2), "=r"(word_3)
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

// Asynchronous copies of a few bytes to shared memory, bypassing registers (PTX ISA: cp.async).

// Starts a copy of four bytes. If `exists` is false, zeros are written and nothing is read.
__device__ inline void copy_4_bytes(std::uint32_t target, const void* source, bool exists) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(target), "l"(source), "r"(exists ? 4 : 0)
               : "memory");
}

// Starts a copy of eight bytes, or writes zeros.
__device__ inline void copy_8_bytes(std::uint32_t target, const void* source, bool exists) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(target), "l"(source), "r"(exists ? 8 : 0)
               : "memory");
}

// Starts a copy of sixteen bytes, or writes zeros. The source must be aligned to sixteen bytes.
__device__ inline void copy_16_bytes(std::uint32_t target, const void* source, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source),
               "r"(exists ? 16 : 0)
               : "memory");
}

// Starts a copy of sixteen bytes whose neighbors in the same 128 bytes are copied soon, perhaps by other
// thread blocks: the L2 cache loads all of them.
__device__ inline void copy_16_bytes_of_line(std::uint32_t target, const void* source) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(target), "l"(source) : "memory");
}

// Starts a copy of sixteen bytes if the condition holds (PTX ISA: cp.async); the L2 cache loads the whole
// line of 128 bytes. There is no branch.
__device__ inline void copy_16_bytes_if(bool condition, std::uint32_t target, const void* source) {
  asm volatile(
      "{\n.reg .pred starts;\nsetp.ne.b32 starts, %0, 0;\n"
      "@starts cp.async.cg.shared.global.L2::128B [%1], [%2], 16;\n}" ::"r"(condition ? 1 : 0),
      "r"(target), "l"(source)
      : "memory");
}

// Returns when all copies that this thread has begun are complete.
__device__ inline void await_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// Makes a group of the copies that this thread has begun since the last call.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Returns when at most the last `groups` groups of this thread are incomplete.
template <int groups>
__device__ void await_copies_but() {
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}

}  // namespace kintsugi::core::cuda
