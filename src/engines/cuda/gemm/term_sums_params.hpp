// Structures and parameters of kernels that multiply a schedule's terms and store the sums of its groups
// (term_sums.cuh). The header includes only what kernels have that are compiled at run time.
#pragma once

#include <cstdint>

#include "engines/cuda/gemm/mma_tiles.hpp"
#include "engines/cuda/gemm/tile_scheduler.hpp"

namespace kintsugi::core::cuda {

// A schedule as a template argument. The members have the meaning of those of Schedule, but for `run`.
struct TermStructure {
  static constexpr int max_terms = 9;
  static constexpr int max_groups = 3;

  struct Term {
    int a;
    int b;
    int group;
    bool rescales;
  };

  Term terms[max_terms];  // those of a group are neighbors
  int count;              // number of terms
  int slices_a;
  int slices_b;
  int groups;
  int run;  // instructions along k after which the sums leave the matrix unit: 1, 2 or 4; 0: never
  bool joint;

  constexpr int slices() const { return slices_a + slices_b; }
  // True if every instruction along k multiplies all terms, before the next. False if all instructions of a
  // run multiply a term before the next term; then there is one group.
  constexpr bool alternates() const { return run <= 1; }
  // True if the term is the first, or the last, of its group.
  constexpr bool begins_group(int t) const { return t == 0 || terms[t - 1].group != terms[t].group; }
  constexpr bool ends_group(int t) const { return t + 1 == count || terms[t + 1].group != terms[t].group; }
  // Sums of an element that the kernel stores, and all that it holds.
  constexpr int stored_sums() const { return joint ? 1 : groups; }
  constexpr int held_sums() const { return stored_sums() + (alternates() ? 0 : 1); }
};

// Bytes of a vector's k-block, of one slice. A pipeline stage has a k-block of all slices.
inline constexpr int term_stage_bytes = 128;
// Bytes of inner indices that an instruction multiplies: 16 elements of two bytes, or 8 of tf32.
inline constexpr int term_step_bytes = 32;
inline constexpr int term_steps = term_stage_bytes / term_step_bytes;

// Tile of a thread block with the pipeline stages for which there is shared memory.
struct TermSumsTile {
  MmaTile tile;
  int stages;
  bool by_wgmma = false;  // the kernel is that of term_sums_wgmma.cuh

  static constexpr int max_stages = 6;
  static constexpr int stage_bytes(const MmaTile& tile, const TermStructure& structure) {
    return (tile.rows * structure.slices_a + tile.columns * structure.slices_b) * term_stage_bytes;
  }
  // wgmma's slices are aligned in the kernel.
  static constexpr int wgmma_alignment = 1024;
  constexpr int shared_bytes(const TermStructure& structure) const {
    return stages * stage_bytes(tile, structure) + (by_wgmma ? wgmma_alignment : 0);
  }
};

struct TermSumsParams {
  TileSchedule schedule;  // each thread block has one tile
  MmaOperand a;
  MmaOperand b;
  float* sums = nullptr;  // of group g, row i and column j at g * group_stride + j * rows + i
  std::int64_t group_stride = 0;
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  float rescale = 1;
  // Weights of joint groups. Those whose bit is set in `fitted` are in device memory.
  float weights[TermStructure::max_groups] = {1, 1, 1};
  std::uint32_t fitted = 0;
  const float* fitted_weight = nullptr;
};

}  // namespace kintsugi::core::cuda
