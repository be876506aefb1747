// Products of slices where C has few tiles, or one of its sides is short: tiles of 64 rows, which two blocks of threads on
// one multiprocessor have at a time. In each one warpgroup multiplies and one thread copies slices; sums are added in the
// order of terms.cuh, with the same bits.
#pragma once

#include <algorithm>
#include <type_traits>

#include "engines/cuda/products/sm90/entries.cuh"
#include "engines/cuda/products/sm90/term_structures.hpp"
#include "engines/cuda/products/sm90/wgmma.cuh"

namespace kintsugi::core::cuda {

template <auto TermStructure, FormatId SliceFormat, SmallTile Tile>
struct SmallTileConfig {
  static constexpr auto structure = TermStructure;
  static constexpr FormatId format = SliceFormat;
  static constexpr int columns = Tile.columns;
  static constexpr int slices = structure.slices_a;
  static constexpr int terms = static_cast<int>(structure.terms.size());
  static constexpr bool rescales =
      std::ranges::any_of(structure.terms, [](const Term& term) { return term.rescales; });
  static constexpr int sums = columns / 2;  // of a thread
  static constexpr int threads = 128;       // that multiply
  static_assert(threads + 32 == small_tile_threads);

  static constexpr int a_bytes = small_tile_rows * term_block * 2;  // of a slice
  static constexpr int b_bytes = columns * term_block * 2;
  static constexpr int stage_bytes = Tile.stage_bytes(slices);
  static constexpr int least_stages = Tile.least_stages();
  static constexpr bool adds_segments = Tile.adds_segments();
};

template <class Config>
struct SmallTileShared {
  Barrier full[most_stages];
  Barrier free[most_stages];  // of both blocks of threads
  TileEnd<small_tile_rows, Config::columns, Config::threads / 32> end;

  __device__ void initialise() {
    for (int stage = 0; stage < most_stages; ++stage) {
      full[stage].initialise(1);
      free[stage].initialise(blocks_of_cluster);
    }
  }
};

struct SmallTilePlace {
  int entry;
  int row;  // of tiles
  int column;

  __device__ explicit SmallTilePlace(const SmallTileProducts& products) {
    const int tiles = products.row_pairs * products.columns;
    entry = cluster_number() / tiles;
    const int rest = cluster_number() % tiles;
    column = rest / products.row_pairs;
    row = rest % products.row_pairs * blocks_of_cluster + block_in_cluster();
  }
};

// Places in shared memory for the slices of a block of k each, one after the other.
template <class Config>
class Stages {
 public:
  __device__ Stages(SmallTileShared<Config>& shared, std::uint32_t memory, int count)
      : shared_(shared), memory_(memory), count_(count) {}

  __device__ void next() {
    if (++stage_ == count_) {
      stage_ = 0;
      parity_ ^= 1;
    }
  }
  __device__ std::uint32_t a(int slice) const {
    return memory_ + stage_ * Config::stage_bytes + slice * Config::a_bytes;
  }
  __device__ std::uint32_t b(int slice) const {
    return memory_ + stage_ * Config::stage_bytes + Config::slices * Config::a_bytes +
           slice * Config::b_bytes;
  }
  __device__ Barrier& full() const { return shared_.full[stage_]; }
  __device__ void wait_until_full() const { full().wait(parity_); }
  __device__ void wait_until_free() const { shared_.free[stage_].wait(parity_ ^ 1); }
  // Frees the stage before this one in both thread blocks, which copy half of the columns each.
  __device__ void release_previous() const {
    const int previous = (stage_ == 0 ? count_ : stage_) - 1;
    if (threadIdx.x < blocks_of_cluster) shared_.free[previous].arrive_in(threadIdx.x);
  }

 private:
  SmallTileShared<Config>& shared_;
  std::uint32_t memory_;
  int count_;
  int stage_ = 0;
  unsigned parity_ = 0;
};

// One thread. Half of the columns' tile is copied by either block of threads, to both.
template <class Config>
__device__ void fill_stages(const TensorMap& a, const TensorMap& b, const SmallTileProducts& products,
                            const SmallTilePlace& place, Stages<Config> stages) {
  constexpr int half = Config::columns / blocks_of_cluster;
  const int rank = block_in_cluster();
  const int first_a = products.shares_a ? 0 : place.entry * Config::slices;
  const int first_b = products.shares_b ? 0 : place.entry * Config::slices;
#pragma unroll 1
  for (int block = 0; block < products.blocks; ++block, stages.next()) {
    stages.wait_until_free();
    stages.full().arrive_expecting(Config::stage_bytes);
#pragma unroll
    for (int slice = 0; slice < Config::slices; ++slice) {
      copy_tile(stages.a(slice), a, stages.full(), block * term_block, place.row * small_tile_rows,
                first_a + slice);
      copy_tile_to_all(stages.b(slice) + rank * half * term_block * 2, b, stages.full(), block * term_block,
                       place.column * Config::columns + rank * half, first_b + slice,
                       (1 << blocks_of_cluster) - 1);
    }
  }
}

// Terms from T on, of one part of a block of k, on their way; `meanwhile` is done behind the first that are.
template <class Config, class Part, int T = 0, class Meanwhile>
__device__ __forceinline__ void multiply_stage(float (&sums)[Config::sums], const Stages<Config>& stages,
                                               bool swapped, float rescale, const Meanwhile& meanwhile) {
  if constexpr (T < Config::terms) {
    constexpr Term term = Config::structure.terms[T];
    if constexpr (term.rescales) {
      commit_products();
      meanwhile();
      wait_for_products<0>();
      settle(sums);
#pragma unroll
      for (int i = 0; i < Config::sums; ++i) sums[i] *= rescale;
      settle(sums);
      begin_products();
    }
    constexpr int offset = Part::first_step * step_bytes;
    const TileDescriptor a = TileDescriptor(stages.a(swapped ? term.b : term.a)) + offset;
    const TileDescriptor b = TileDescriptor(stages.b(swapped ? term.a : term.b)) + offset;
#pragma unroll
    for (int i = 0; i < Part::steps; ++i) {
      multiply_slices<Config::format, Config::columns>(sums, a + i * step_bytes, b + i * step_bytes,
                                                       T > 0 || i > 0);
    }
    multiply_stage<Config, Part, T + 1>(sums, stages, swapped, rescale, meanwhile);
  } else {
    commit_products();
    if constexpr (!Config::rescales) meanwhile();
  }
}

// Sums of a segment of k (Schedule::k_segment), whose blocks leave the matrix unit as `Count` sums each. Those of one part
// of a block are multiplied while those of the part before end and are added.
template <class Config, int Count>
class StageSums {
 public:
  using Sums = float[Config::sums];

  __device__ StageSums(const SmallTileProducts& products, const Stages<Config>& stages)
      : products_(products), next_(stages) {}

  // So many blocks of k, at least one. Parts of even numbers and of odd ones have accumulators of their own.
  __device__ __forceinline__ void add_blocks(int blocks) {
    if constexpr (Config::least_stages == 1) {
      Sums inside;
#pragma unroll 1
      for (int block = 0; block < blocks; ++block) add_one_by_one(inside);
    } else if constexpr (Count == 1) {
      add_whole_blocks(blocks);
    } else {
      add_divided_blocks(blocks);
    }
  }

  Sums sums = {};

 private:
  template <int Index>
  using Part = SumPart<Count, Index>;
  using First = Part<0>;
  using Last = Part<Count - 1>;

  // Begins that part of the next block of k, with `meanwhile` behind its first products.
  template <class Part, class Meanwhile>
  __device__ __forceinline__ void multiply(Sums& inside, const Meanwhile& meanwhile) {
    if constexpr (Part::begins_block) next_.wait_until_full();
    begin_products();
    multiply_stage<Config, Part>(inside, next_, products_.swapped, products_.rescale, meanwhile);
    if constexpr (Part::ends_block) next_.next();
  }
  template <class Part>
  __device__ __forceinline__ void multiply(Sums& inside) {
    multiply<Part>(inside, [] {});
  }
  // Adds that part, behind which `Younger` parts are on their way. A block ends before the stage `next_`.
  template <class Part, int Younger>
  __device__ __forceinline__ void add(Sums& inside) {
    wait_for_products<Younger>();
    settle(inside);
    if constexpr (Part::ends_block) next_.release_previous();
#pragma unroll
    for (int i = 0; i < Config::sums; ++i) sums[i] += inside[i];
  }
  template <class Part, class Before>
  __device__ __forceinline__ void multiply_and_add(Sums& inside, Sums& before) {
    multiply<Part>(inside, [&] { add<Before, 1>(before); });
  }

  template <int Index = 0>
  __device__ __forceinline__ void add_one_by_one(Sums& inside) {
    if constexpr (Index < Count) {
      multiply<Part<Index>>(inside);
      add<Part<Index>, 0>(inside);
      add_one_by_one<Index + 1>(inside);
    }
  }

  __device__ __forceinline__ void add_whole_blocks(int blocks) {
    Sums even, odd;
    multiply<First>(even);
    int block = 1;
#pragma unroll 1
    for (; block + 1 < blocks; block += 2) {
      multiply_and_add<First, First>(odd, even);
      multiply_and_add<First, First>(even, odd);
    }
    if (block >= blocks) return add<First, 0>(even);
    multiply_and_add<First, First>(odd, even);
    add<First, 0>(odd);
  }

  // Parts of a block from the Index-th on.
  template <int Index = 1>
  __device__ __forceinline__ void multiply_rest(Sums& even, Sums& odd) {
    if constexpr (Index < Count) {
      constexpr bool is_even = Index % 2 == 0;
      multiply_and_add<Part<Index>, Part<Index - 1>>(is_even ? even : odd, is_even ? odd : even);
      multiply_rest<Index + 1>(even, odd);
    }
  }
  __device__ __forceinline__ void add_divided_blocks(int blocks) {
    static_assert(Count % 2 == 0);
    Sums even, odd;
    multiply<First>(even);
    int block = 1;
#pragma unroll 1
    for (; block < blocks; ++block) {
      multiply_rest(even, odd);
      multiply_and_add<First, Last>(even, odd);
    }
    // Never true. ptxas of CUDA 13.0 serialises the loop's products unless some path out of it waits for `even` alone.
    if (block > blocks) return add<First, 0>(even);
    multiply_rest(even, odd);
    add<Last, 0>(odd);
  }

  const SmallTileProducts& products_;
  Stages<Config> next_;
};

// The sums of all segments of k, added in their order. Where registers have no room for a second set of sums, k is one
// segment.
template <class Config, int Count>
__device__ __forceinline__ void add_segments(StageSums<Config, Count>& sums,
                                             const SmallTileProducts& products) {
  if constexpr (!Config::adds_segments) {
    sums.add_blocks(products.blocks);
  } else {
    float all[Config::sums] = {};
#pragma unroll 1
    for (int block = 0; block < products.blocks; block += products.segment_blocks) {
#pragma unroll
      for (float& sum : sums.sums) sum = 0;
      sums.add_blocks(min(products.blocks - block, products.segment_blocks));
#pragma unroll
      for (int i = 0; i < Config::sums; ++i) all[i] += sums.sums[i];
    }
#pragma unroll
    for (int i = 0; i < Config::sums; ++i) sums.sums[i] = all[i];
  }
}

template <class Config>
__device__ void multiply_stages(const SmallTileProducts& products, SmallTileShared<Config>& shared,
                                const SmallTilePlace& place, const Stages<Config>& stages) {
  const int thread = static_cast<int>(threadIdx.x);
  // While the first slices are on their way.
  shared.end.find(products.tile, {products.shares_a, products.shares_b}, place.entry,
                  {std::int64_t{place.row} * small_tile_rows, small_tile_rows},
                  {std::int64_t{place.column} * Config::columns, Config::columns}, thread);
  meet(1, Config::threads);
  const auto multiply = [&](auto count) {
    StageSums<Config, count> sums(products, stages);
    add_segments(sums, products);
    put_entries<Config::format == FormatId::fp16>(sums.sums, products.tile, shared.end, 0, thread,
                                                  Config::threads);
  };
  if (products.sums_of_block == 4) {
    multiply(std::integral_constant<int, 4>());
  } else if (products.sums_of_block == 2) {
    multiply(std::integral_constant<int, 2>());
  } else {
    multiply(std::integral_constant<int, 1>());
  }
}

template <class Config>
__device__ void multiply_small_tile(const TensorMap& a, const TensorMap& b,
                                    const SmallTileProducts& products) {
  extern __shared__ unsigned char memory[];
  __shared__ SmallTileShared<Config> shared;
  const SmallTilePlace place(products);
  const Stages<Config> stages(shared, aligned_tiles(memory), products.stages);
  const DeviceCondition& condition = products.tile.condition;
  if (condition.known && !holds(condition, place.entry)) return leave_in_order();
  begin_cluster(shared);
  if (holds(products.tile.condition, place.entry)) {
    if (threadIdx.x < Config::threads) {
      multiply_stages<Config>(products, shared, place, stages);
    } else if (threadIdx.x == Config::threads) {
      fill_stages<Config>(a, b, products, place, stages);
    }
  }
  __syncwarp();
  synchronise_cluster();  // no block's barriers go before the other's arrivals
}

}  // namespace kintsugi::core::cuda
