// LE-GEMM's thread parallelism analytic model, which chooses a tile of C from a device's limits alone
// (Zhang et al., Journal of Systems Architecture 160 (2025) 103336, sections 4.2 and 4.3).
#pragma once

#include <cstdint>
#include <optional>

namespace kintsugi::core::cuda::le_gemm {

// Tile of a workgroup (thread block): T_M x T_N elements of C, T_K inner indices in an iteration.
struct Tile {
  std::int64_t rows;     // T_M
  std::int64_t columns;  // T_N
  std::int64_t depth;    // T_K
  int threads;           // Work_num
};

struct Device {
  int units;                  // compute units (SMs)
  int wavefront;              // T_thread_num: threads of a wavefront (warp)
  int unit_threads;           // threads that a unit holds
  int unit_registers;         // 32-bit registers of a unit
  int thread_registers;       // most registers of a thread
  std::int64_t shared_bytes;  // most shared memory of a workgroup
  int fragment_depth;         // f_k
};

// Eq. 12: T_TLP, the number of threads that compute C, at most as many as the device holds.
double thread_parallelism(std::int64_t m, std::int64_t n, const Tile& tile, const Device& device);
// Eq. 13: T_memory, the bytes that an iteration loads. The paper has two slices of each operand.
double memory_bytes(const Tile& tile, int slices = 2);
// Eq. 14: T_flops, the operations of an iteration. The paper has three terms.
double operations(const Tile& tile, int terms = 3);
// Eq. 15: operations per loaded byte.
double intensity(const Tile& tile);
// Eq. 16: Work_DL, the elements that a thread loads.
double loaded_elements(const Tile& tile);
// Eq. 17: Work_CP, the elements of C that a thread computes, a register each.
double computed_elements(const Tile& tile);

// The paper maximises both T_TLP (Eq. 12) and the compute-to-memory ratio (Eq. 15), which oppose each other,
// and leaves open how they are weighed. Here the value of a tile is the product of their powers; weights that
// add up to 1 lose no generality. This weight of T_TLP is the best one for the profile of one device, and was
// fixed before tiles of other devices were predicted (tests/fakes/profiles/predicted_test.cpp).
inline constexpr double parallelism_weight = 0.35;

// Value of a tile for C of m x n elements. The best tile has the greatest one.
double value(std::int64_t m, std::int64_t n, const Tile& tile, const Device& device,
             double weight = parallelism_weight);

// Returns the best tile of those whose sides are powers of two. `fragments`: least number of fragments along
// T_K.
std::optional<Tile> best_tile(std::int64_t m, std::int64_t n, const Device& device, int fragments = 2);

}  // namespace kintsugi::core::cuda::le_gemm
