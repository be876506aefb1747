// The kernel of term_sums.cuh by wgmma, for structures whose sums stay in the matrix unit over all of k, or
// leave it after each k-block. Every warpgroup multiplies 64 rows of the tile. Slices are copied as in
// term_sums.cuh: their layout in shared memory is that of wgmma's descriptors.
#pragma once

#include <cstdint>

#include "engines/cuda/gemm/term_sums.cuh"
#include "engines/cuda/ptx/wgmma.cuh"

namespace kintsugi::core::cuda {

inline constexpr int wgmma_rows = 64;

// A warpgroup's sums of one group.
template <class Config>
using WarpgroupSums = float[Config::tile.columns / 2];

template <class Config>
__device__ void issue(WarpgroupSums<Config>& sums, std::uint32_t stage, const TermStructure::Term& term,
                      int step, bool keep) {
  const std::uint32_t warpgroup_offset =
      static_cast<std::uint32_t>(threadIdx.x) / 128 * wgmma_rows * term_stage_bytes;
  const std::uint32_t a = stage + warpgroup_offset + term.a * Config::tile.rows * term_stage_bytes;
  const std::uint32_t b = stage + Config::b_offset + term.b * Config::tile.columns * term_stage_bytes;
  wgmma<Config::format, Config::tile.columns>(sums, MatrixDescriptor(a) + step * term_step_bytes,
                                              MatrixDescriptor(b) + step * term_step_bytes, keep);
}

// Multiplies a k-block: all terms of an instruction along k, then those of the next. When it returns, the
// products are in flight.
template <class Config>
struct TermsInFlight {
  static constexpr TermStructure structure = Config::structure;
  static constexpr int k_blocks_in_flight = 1;

  WarpgroupSums<Config> sums[structure.groups];

  __device__ void add_stage(std::uint32_t stage, float) {
#pragma unroll
    for (auto& group : sums) warpgroup_fence_operand(group);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < term_steps; ++step) {
#pragma unroll
      for (int t = 0; t < structure.count; ++t) {
        constexpr TermStructure all = structure;
        issue<Config>(sums[all.terms[t].group], stage, all.terms[t], step, /*keep=*/true);
      }
    }
    wgmma_commit_group();
  }
  template <int InFlight>
  __device__ void wait() {
    wgmma_wait_group<InFlight>();
#pragma unroll
    for (auto& group : sums) warpgroup_fence_operand(group);
  }
};

// Multiplies a k-block, one term after the other, and adds its sums outside the matrix unit.
template <class Config>
struct TermsOfBlock {
  static constexpr TermStructure structure = Config::structure;
  static constexpr int k_blocks_in_flight = 0;

  WarpgroupSums<Config> sums[1];
  WarpgroupSums<Config> inside;

  __device__ void add_stage(std::uint32_t stage, float rescale) {
    constexpr TermStructure all = structure;
    warpgroup_fence_operand(inside);
#pragma unroll
    for (int t = 0; t < all.count; ++t) {
      if (all.terms[t].rescales) {
        wgmma_commit_group();
        end();
#pragma unroll
        for (float& sum : inside) sum *= rescale;
        warpgroup_fence_operand(inside);
      }
      if (t == 0 || all.terms[t].rescales) wgmma_fence();
#pragma unroll
      for (int step = 0; step < term_steps; ++step)
        issue<Config>(inside, stage, all.terms[t], step, /*keep=*/t > 0 || step > 0);
    }
    wgmma_commit_group();
    end();
#pragma unroll
    for (int i = 0; i < Config::tile.columns / 2; ++i) sums[0][i] += inside[i];
  }
  template <int>
  __device__ void wait() {}

 private:
  __device__ void end() {
    wgmma_wait_group<0>();
    warpgroup_fence_operand(inside);
  }
};

template <bool OfBlock, class Config>
struct WgmmaTermsOf {
  using Type = TermsInFlight<Config>;
};
template <class Config>
struct WgmmaTermsOf<true, Config> {
  using Type = TermsOfBlock<Config>;
};

template <class Config>
__device__ void add_up_terms_by_wgmma(const TermSumsParams& params) {
  using Terms = typename WgmmaTermsOf<Config::structure.run == term_steps, Config>::Type;
  static_assert(Config::structure.run == 0 || Config::structure.run == term_steps);
  static_assert(Config::threads == Config::tile.rows / wgmma_rows * 128);
  // Stages that are loaded, or being loaded, beside those whose products are in flight.
  constexpr int ahead = Config::stages - 1 - Terms::k_blocks_in_flight;
  static_assert(ahead >= 1);
  extern __shared__ unsigned char memory[];
  const TermPosition<Config> position(params);
  constexpr std::uint32_t alignment = TermSumsTile::wgmma_alignment;
  const std::uint32_t stages = (shared_address(memory) + alignment - 1) / alignment * alignment;
  const int k_blocks = params.schedule.k_blocks;
  TermLoader<Config> loader(params, position.row, position.column);
#pragma unroll
  for (int s = 0; s < ahead; ++s) {
    loader.template load<0, 1>(stages + s * Config::stage_bytes, s < k_blocks);
    loader.advance();
  }
  Terms terms;
#pragma unroll
  for (auto& group : terms.sums) {
#pragma unroll
    for (float& sum : group) sum = 0;
  }
  std::uint32_t multiplied = 0;  // of the stages
  std::uint32_t filled = ahead;
#pragma unroll 1
  for (int k_block = 0; k_block < k_blocks; ++k_block) {
    await_copies_but<ahead - 1>();
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // wgmma reads what the threads have copied
    __syncthreads();  // all copies have arrived, and the stage that is filled next is free
    if constexpr (Terms::k_blocks_in_flight > 0)
      terms.add_stage(stages + multiplied * Config::stage_bytes, params.rescale);
    loader.template load<0, 1>(stages + filled * Config::stage_bytes, k_block + ahead < k_blocks);
    loader.advance();
    if constexpr (Terms::k_blocks_in_flight == 0)
      terms.add_stage(stages + multiplied * Config::stage_bytes, params.rescale);
    terms.template wait<Terms::k_blocks_in_flight>();
    multiplied = multiplied + 1 == Config::stages ? 0 : multiplied + 1;
    filled = filled + 1 == Config::stages ? 0 : filled + 1;
  }
  terms.template wait<0>();
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const int first_row = static_cast<int>(threadIdx.x) / 128 * wgmma_rows;
#pragma unroll
  for (int g = 0; g < Config::structure.stored_sums(); ++g) {
#pragma unroll
    for (int i = 0; i < Config::tile.columns / 2; ++i)  // PTX ISA: fragment of D of wgmma
      position.store(params, g, first_row + thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8,
                     i / 4 * 8 + thread % 4 * 2 + i % 2, terms.sums[g][i]);
  }
}

}  // namespace kintsugi::core::cuda
