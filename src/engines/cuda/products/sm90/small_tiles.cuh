// Products of slices where C has few tiles, or one of its sides is short: tiles of 64 rows, which two blocks of threads on
// one multiprocessor have at a time. In each one warpgroup multiplies and one thread copies slices; sums are added in the
// order of terms.cuh, with the same bits.
#pragma once

#include <algorithm>

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
  // In both blocks of threads, which copy half of the columns each.
  __device__ void release() const {
    if (threadIdx.x < blocks_of_cluster) shared_.free[stage_].arrive_in(threadIdx.x);
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

// Terms from T on, of a block of k, on their way; `meanwhile` is done behind the first that are.
template <class Config, int T = 0, class Meanwhile>
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
    const TileDescriptor a(stages.a(swapped ? term.b : term.a));
    const TileDescriptor b(stages.b(swapped ? term.a : term.b));
#pragma unroll
    for (int i = 0; i < term_block / 16; ++i)
      multiply_slices<Config::format, Config::columns>(sums, a + i * 32, b + i * 32, T > 0 || i > 0);
    multiply_stage<Config, T + 1>(sums, stages, swapped, rescale, meanwhile);
  } else {
    commit_products();
    if constexpr (!Config::rescales) meanwhile();
  }
}

// Products of a block of k, while those of the one before it end and are added.
template <class Config>
class StageSums {
 public:
  __device__ StageSums(const SmallTileProducts& products, const Stages<Config>& stages)
      : products_(products), next_(stages), under_way_(stages) {}

  // Begins a block of k and adds the one before it, if `Follows`.
  template <bool Follows>
  __device__ __forceinline__ void multiply(float (&inside)[Config::sums], float (&before)[Config::sums]) {
    next_.wait_until_full();
    begin_products();
    multiply_stage<Config>(inside, next_, products_.swapped, products_.rescale, [&] {
      if constexpr (Follows) add<1>(before);
    });
    next_.next();
  }
  // Of the block whose products are the oldest, where `Younger` blocks' are on their way behind them.
  template <int Younger>
  __device__ __forceinline__ void add(float (&inside)[Config::sums]) {
    wait_for_products<Younger>();
    settle(inside);
    under_way_.release();
    under_way_.next();
#pragma unroll
    for (int i = 0; i < Config::sums; ++i) sums[i] += inside[i];
  }

  float sums[Config::sums] = {};

 private:
  const SmallTileProducts& products_;
  Stages<Config> next_;
  Stages<Config> under_way_;
};

template <class Config>
__device__ void multiply_stages(const SmallTileProducts& products, SmallTileShared<Config>& shared,
                                const SmallTilePlace& place, const Stages<Config>& stages) {
  const int thread = static_cast<int>(threadIdx.x);
  // While the first slices are on their way.
  shared.end.find(products.tile, {products.shares_a, products.shares_b}, place.entry,
                  {std::int64_t{place.row} * small_tile_rows, small_tile_rows},
                  {std::int64_t{place.column} * Config::columns, Config::columns}, thread);
  meet(1, Config::threads);
  StageSums<Config> sums(products, stages);
  float even[Config::sums];
  if constexpr (Config::least_stages == 1) {
#pragma unroll 1
    for (int block = 0; block < products.blocks; ++block) {
      sums.template multiply<false>(even, even);
      sums.template add<0>(even);
    }
  } else {
    float odd[Config::sums];
    sums.template multiply<false>(even, odd);
    int block = 1;
#pragma unroll 1
    for (; block + 1 < products.blocks; block += 2) {
      sums.template multiply<true>(odd, even);
      sums.template multiply<true>(even, odd);
    }
    if (block < products.blocks) {
      sums.template multiply<true>(odd, even);
      sums.template add<0>(odd);
    } else {
      sums.template add<0>(even);
    }
  }
  put_entries<Config::format == FormatId::fp16>(sums.sums, products.tile, shared.end, 0, thread,
                                                Config::threads);
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
