// Event simulation of an Ascend 910A that runs H2SGEMM's Algorithm 1 on real tiles, and the paper's Eqs. 8 to
// 10. lab/docs/ascend.md has the sources of the figures and what is assumed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace kintsugi::lab::ascend {

// One core. Rates are bytes a cycle.
struct Core {
  int cores = 32;
  double clock = 1e9;
  std::int64_t cube_products = 16 * 16 * 16;  // a cycle
  std::int64_t vector_lanes = 64;             // FP32 elements a cycle
  std::int64_t l1_elements = 512 * 1024;      // FP16
  std::int64_t l0c_elements = 64 * 1024;      // FP32
  std::int64_t ub_bytes = 248 * 1024;
  double memory = 37.5;  // 1.2 TB/s, shared by all cores
  double l2_to_ub = 110;
  double ub_to_l2 = 64;
  double ub_to_l1 = 128;
  double l1_to_l0a = 512;
  double l1_to_l0b = 256;
  double l0c_to_ub = 256;
};
inline constexpr Core ascend_910a{};
// A third of 256 TFLOP/s, which the paper divides its rates by.
inline constexpr double paper_peak = 256e12 / 3;

// Tiles of m x k of A, k x n of B and m x n of C.
struct Blocks {
  std::int64_t m = 0;
  std::int64_t k = 0;
  std::int64_t n = 0;
};

// Eq. 10.
bool feasible(const Blocks& blocks);
// Eq. 8: number of blocks of A in L1, and the share of L1 that they use.
std::int64_t fused_blocks(const Blocks& blocks, std::int64_t l1_elements = ascend_910a.l1_elements);
double fused_share(const Blocks& blocks, std::int64_t l1_elements = ascend_910a.l1_elements);
// Height of blocks of A for which Eq. 9's traffic is least.
double optimal_height(double share, const Core& core = ascend_910a);

enum class Buffering : std::uint8_t {
  single,      // one slot of every buffer
  overlapped,  // two slots, L0C included if it holds two; parts of C leave during the next column
  in_order,    // two slots but one of L0C; C leaves where Algorithm 1 says
};

struct Problem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  Blocks blocks;
  Buffering buffering = Buffering::overlapped;
  std::int64_t max_fused = 0;  // 0: as many blocks of A in L1 as Eq. 8 gives
};

enum class Pipe : std::uint8_t { cube, vector, mte1, mte2, mte3 };
inline constexpr int pipes = 5;

struct Times {
  double cycles = 0;               // of the core that finishes last
  std::array<double, pipes> busy;  // cycles in which a pipe works
  std::array<double, 3> of_terms;  // cycles of R_A B, A R_B, A B

  double rate(const Problem& problem, const Core& core = ascend_910a) const;  // FLOP/s, 2 m n k a product
};

// Models of 16 products and an accumulator in the cube.
enum class Sum : std::uint8_t {
  sequential,  // FP32, one product after the other, as the library's accumulator fp32
  once,        // products and accumulator are added exactly and rounded once
  tree,        // a binary tree of FP32 sums of products, then the accumulator
};
float add_products(Sum model, float sum, const float* a, const float* b);  // 16 of each

// Sums of the terms R_A B, A R_B and A B as Algorithm 1 leaves them in main memory, row-major m x n.
using Components = std::array<std::vector<float>, 3>;

// Simulates the times alone: one of the block rows, groups and columns that are alike, of all cores in step.
Times simulate(const Problem& problem, const Core& core = ascend_910a);
// Simulates the times of all block rows on one core and moves tiles of A (m x k) and B (k x n), row-major,
// through the core's buffers. Residuals are scaled by 2^sb. `skips_waits`: operations do not wait for the
// readers of what they overwrite, which spoils results; for tests.
Times simulate(const Problem& problem, const std::vector<float>& a, const std::vector<float>& b, int sb,
               Sum model, Components& components, bool skips_waits = false);

// Adds component matrices: as the library does, in FP64 with one rounding, or as the vector unit can, in
// FP32.
std::vector<float> combine(const Components& components, int sb, bool in_fp32);

// Nearest FP16 number, ties to even, with subnormal numbers; an infinity from 65520 on.
float to_half(float x);

}  // namespace kintsugi::lab::ascend
