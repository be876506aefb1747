// Products of slices, all terms of a sum in one pass: every tile of slices is loaded once for all its terms, sums leave the
// tensor cores after every 64 or 32 inner indices and are added in registers, and become entries of C at the end. Two blocks of
// threads in a cluster share the columns' slices; in each one thread copies tiles to shared memory, two warpgroups
// multiply 64 rows each.
#pragma once

#include <type_traits>

#include "engines/cuda/products/sm90/entries.cuh"
#include "engines/cuda/products/sm90/term_structures.hpp"
#include "engines/cuda/products/sm90/wgmma.cuh"

namespace kintsugi::core::cuda {

inline constexpr int block_k = term_block;
inline constexpr int consumers = 2;  // warpgroups
inline constexpr int block_tile_rows = 64 * consumers;
static_assert(term_tile_rows == blocks_of_cluster * block_tile_rows &&
              term_threads == warpgroup * (1 + consumers));
static_assert(counters_of_tile == blocks_of_cluster * consumers);

template <auto TermStructure, FormatId SliceFormat, TermTile Tile>
struct TermConfig {
  static constexpr auto structure = TermStructure;
  static constexpr FormatId format = SliceFormat;
  static constexpr TermTile tile = Tile;
  static constexpr int columns = tile.columns;
  static constexpr int slices = structure.slices_a;
  static constexpr int terms = static_cast<int>(structure.terms.size());
  static constexpr int sums = columns / 2;  // of a thread

  // Of a thread; together what a multiprocessor has, but for what it cannot divide.
  static constexpr int consumer_registers = columns == most_tile_columns ? 232 : 216;
  static constexpr int producer_registers = 504 - 2 * consumer_registers;

  static constexpr int a_bytes = block_tile_rows * block_k * 2;  // of a slice
  static constexpr int place_bytes = tile.place_bytes();

  static constexpr int first_place(int slice) {
    return slice == 0 ? 0 : first_place(slice - 1) + tile.places[slice - 1];
  }
  static constexpr int places = first_place(slices);
  static_assert(tile.shared_bytes() == places * place_bytes + 1024);

  // Terms between which the matrix unit is waited for: those that change the sums, else the last.
  static constexpr bool begins_segment(int term) {
    if (term == 0 || structure.terms[term].rescales) return true;
    if (term + 1 < terms) return false;
    for (const Term& other : structure.terms) {
      if (other.rescales) return false;
    }
    return true;
  }
  static constexpr bool is_used_from(int slice, int term) {
    for (int t = term; t < terms; ++t) {
      if (structure.terms[t].a == slice || structure.terms[t].b == slice) return true;
    }
    return false;
  }
  // Whether a slice has its last term before this one, which begins a segment, and not before the segment before it.
  static constexpr bool is_free_at(int slice, int term) {
    if (term < terms && is_used_from(slice, term)) return false;
    int before = term - 1;
    while (!begins_segment(before)) --before;
    return is_used_from(slice, before);
  }
};

// visit(std::integral_constant) for slices first, first + 1, ...
template <class Config, int First = 0, class Visit>
__device__ void for_each_slice(const Visit& visit) {
  if constexpr (First < Config::slices) {
    visit(std::integral_constant<int, First>());
    for_each_slice<Config, First + 1>(visit);
  }
}

// Places for tiles of a slice, of A and of B beside each other, and the ways around them.
template <class Config>
struct TermShared {
  Barrier full[Config::places];
  Barrier free[Config::places];  // of both blocks of threads
  TileEnd<block_tile_rows, Config::columns, warpgroup / 32 - 1> end;
  Barrier end_known;
  Barrier end_read;
  int cluster;  // its number, which consumers have no register for

  __device__ void initialise() {
    cluster = cluster_number();
    end_known.initialise(end.finders);
    end_read.initialise(consumers * warpgroup / 32);
    for (int place = 0; place < Config::places; ++place) {
      full[place].initialise(1);
      free[place].initialise(consumers * blocks_of_cluster);
    }
  }
};

// Which place of every slice comes next for a thread, and in how manieth turn.
template <class Config>
class Turns {
 public:
  __device__ Turns(TermShared<Config>& shared, std::uint32_t tiles) : shared_(shared), tiles_(tiles) {
    for_each_slice<Config>([&](auto slice) {
      place_[slice] = Config::first_place(slice);
      parity_[slice] = 0;
    });
  }

  __device__ void next() {
    for_each_slice<Config>([&](auto slice) {
      constexpr int end = Config::first_place(slice + 1);
      if (++place_[slice] == end) {
        place_[slice] = Config::first_place(slice);
        parity_[slice] ^= 1;
      }
    });
  }
  __device__ std::uint32_t a(int slice) const { return tiles_ + place_[slice] * Config::place_bytes; }
  __device__ std::uint32_t b(int slice) const { return a(slice) + Config::a_bytes; }
  __device__ Barrier& full(int slice) const { return shared_.full[place_[slice]]; }
  __device__ void wait_until_full(int slice) const { full(slice).wait(parity_[slice]); }
  __device__ void wait_until_free(int slice) const { shared_.free[place_[slice]].wait(parity_[slice] ^ 1); }
  // A warpgroup is done with those that have no term from this one on.
  template <int Term>
  __device__ void release_before() const {
    const unsigned thread = threadIdx.x % warpgroup;
    for_each_slice<Config>([&](auto slice) {
      if constexpr (Config::is_free_at(slice, Term)) {
        if (thread < blocks_of_cluster) shared_.free[place_[slice]].arrive_in(thread);
      }
    });
  }

 private:
  TermShared<Config>& shared_;
  std::uint32_t tiles_;
  int place_[Config::slices];
  unsigned parity_[Config::slices];
};

// Which of the tensor's slices are those of an entry.
__device__ inline int first_slice(bool shared, const TilePlace& place, int slices) {
  return shared ? 0 : place.entry * slices;
}

// Whether the piece's entry is on another rung.
__device__ inline bool is_left_out(const TermProducts& products, const Piece& piece) {
  if (products.tile.condition.choice == nullptr) return false;
  return !holds(products.tile.condition, products.walk.place(piece).entry);
}

// Whether all entries are on other rungs; by all threads together.
__device__ inline bool are_left_out(const DeviceCondition& condition, int entries) {
  bool taken = false;
  for (int entry = static_cast<int>(threadIdx.x); entry < entries; entry += term_threads)
    taken = taken || holds(condition, entry);
  return __syncthreads_or(taken ? 1 : 0) == 0;
}

// A block of k of one slice. Half of the columns' tile is copied by either block of threads, to both.
template <class Config>
__device__ void copy_slice(const TensorMap& a, const TensorMap& b, const TermProducts& products,
                           const Turns<Config>& turns, const TilePlace& place, int rank, int block,
                           int slice) {
  constexpr int half = Config::columns / blocks_of_cluster;
  const int slice_a = first_slice(products.shares_a, place, Config::slices) + slice;
  const int slice_b = first_slice(products.shares_b, place, Config::slices) + slice;
  Barrier& full = turns.full(slice);
  turns.wait_until_free(slice);
  full.arrive_expecting(Config::place_bytes);
  copy_tile(turns.a(slice), a, full, block * block_k,
            (place.row * blocks_of_cluster + rank) * block_tile_rows, slice_a);
  copy_tile_to_all(turns.b(slice) + rank * half * block_k * 2, b, full, block * block_k,
                   place.column * Config::columns + rank * half, slice_b, (1 << blocks_of_cluster) - 1);
}

// One thread of a block of threads.
template <class Config>
__device__ void produce(const TensorMap& a, const TensorMap& b, const TermProducts& products,
                        TermShared<Config>& shared, std::uint32_t tiles) {
  const int rank = block_in_cluster();
  Turns<Config> turns(shared, tiles);
  Pieces pieces(products.walk);
  Piece piece;
  while (pieces.next(shared.cluster, piece)) {
    if (is_left_out(products, piece)) continue;
    const TilePlace place = products.walk.place(piece);
    const int end = products.walk.end_block(piece);
#pragma unroll 1
    for (int block = products.walk.first_block(piece); block < end; ++block, turns.next()) {
      for_each_slice<Config>(
          [&](auto slice) { copy_slice(a, b, products, turns, place, rank, block, slice); });
    }
  }
}

// Where a warpgroup's rows of A begin in a tile, in bytes.
__device__ inline std::uint32_t rows_offset(int consumer) { return consumer * 64 * block_k * 2; }

// A's rows of a warpgroup over `Steps` instructions from the `First` on, in registers or where they lie.
template <bool InRegisters, int First, int Steps>
struct Rows {
  TileDescriptor tile;

  __device__ explicit Rows(std::uint32_t address) : tile(TileDescriptor(address) + First * step_bytes) {}
  __device__ void load() {}
  __device__ TileDescriptor step(int i) const { return tile + i * step_bytes; }
};
template <int First, int Steps>
struct Rows<true, First, Steps> {
  std::uint32_t address;
  std::uint32_t steps[Steps][4];

  __device__ explicit Rows(std::uint32_t address) : address(address) {}
  __device__ void load() {
#pragma unroll
    for (int i = 0; i < Steps; ++i) load_rows(steps[i], address, First + i);
  }
  __device__ const std::uint32_t (&step(int i) const)[4] { return steps[i]; }
};

// One term over the inner indices of one sum.
template <class Config, class Part, class Left>
__device__ void add_term(float (&sums)[Config::sums], const Left& a, TileDescriptor b, bool first) {
#pragma unroll
  for (int i = 0; i < Part::steps; ++i)
    multiply_slices<Config::format, Config::columns>(sums, a.step(i), b + i * step_bytes, i > 0 || !first);
}

// The consumers' products follow each other: while those of one are computed the other adds its sums up, and the matrix
// unit has always something to do. Mixed they would end together, and it would wait for both.
inline constexpr int first_turn = 1;  // numbers of the block's barriers; 0 is that of all threads
inline constexpr int first_warpgroup = first_turn + consumers;

__device__ inline void await_turn(int consumer) { meet(first_turn + consumer, consumers * warpgroup); }
__device__ inline void pass_turn(int consumer) {
  arrive_at(first_turn + (consumer + 1) % consumers, consumers * warpgroup);
}

// The first slice of A, which most terms read, may be in registers.
template <class Config, class Part>
using HighRows = Rows<Config::tile.high_in_registers, Part::first_step, Part::steps>;

// Of the matrix unit's work before this term: it is waited for where the sums are to change.
template <class Config, class Part, int T>
__device__ void begin_segment(float (&sums)[Config::sums], const Turns<Config>& turns, int consumer,
                              float rescale) {
  commit_products();
  if constexpr (Config::structure.terms[T].rescales) {
    pass_turn(consumer);
    wait_for_products<0>();
    settle(sums);
    if constexpr (Part::ends_block) turns.template release_before<T>();
#pragma unroll
    for (float& sum : sums) sum *= rescale;
    settle(sums);
    await_turn(consumer);
    begin_products();
  }
}

// Terms from T on, of one sum.
template <class Config, class Part, int T>
__device__ void add_terms(float (&sums)[Config::sums], const HighRows<Config, Part>& a0,
                          const Turns<Config>& turns, int consumer, float rescale) {
  if constexpr (T < Config::terms) {
    constexpr Term term = Config::structure.terms[T];
    if constexpr (T > 0 && Config::begins_segment(T))
      begin_segment<Config, Part, T>(sums, turns, consumer, rescale);
    const TileDescriptor b = TileDescriptor(turns.b(term.b)) + Part::first_step * step_bytes;
    if constexpr (term.a == 0) {
      add_term<Config, Part>(sums, a0, b, T == 0);
    } else {
      const Rows<false, Part::first_step, Part::steps> a(turns.a(term.a) + rows_offset(consumer));
      add_term<Config, Part>(sums, a, b, T == 0);
    }
    add_terms<Config, Part, T + 1>(sums, a0, turns, consumer, rescale);
  }
}

// One sum of a block of k. With the last one the block's slices become free as soon as may be.
template <class Config, class Part>
__device__ void multiply_part(float (&sums)[Config::sums], const Turns<Config>& turns, int consumer,
                              float rescale) {
  constexpr int last = Config::terms - 1;
  HighRows<Config, Part> a0(turns.a(0) + rows_offset(consumer));
  if constexpr (Part::begins_block) turns.wait_until_full(0);
  a0.load();
  if constexpr (Part::begins_block)
    for_each_slice<Config, 1>([&](auto slice) { turns.wait_until_full(slice); });
  await_turn(consumer);
  begin_products();
  add_terms<Config, Part, 0>(sums, a0, turns, consumer, rescale);
  commit_products();
  pass_turn(consumer);
  if constexpr (Part::ends_block && !Config::structure.terms[last].rescales) {
    wait_for_products<1>();
    turns.template release_before<last>();
  }
  wait_for_products<0>();
  settle(sums);
  if constexpr (Part::ends_block) turns.template release_before<Config::terms>();
}

// A block of k, whose products leave the matrix unit as so many sums, from the one of that index on.
template <class Config, int Count, int Index = 0>
__device__ void add_block(float (&sums)[Config::sums], float (&inside)[Config::sums],
                          const Turns<Config>& turns, int consumer, float rescale) {
  if constexpr (Index < Count) {
    multiply_part<Config, SumPart<Count, Index>>(inside, turns, consumer, rescale);
#pragma unroll
    for (int i = 0; i < Config::sums; ++i) sums[i] += inside[i];
    add_block<Config, Count, Index + 1>(sums, inside, turns, consumer, rescale);
  }
}

// Sums that one cluster hands to the next, as the threads of a warpgroup have them, and how many parts have been added.
template <class Config>
__device__ float4* sums_of_tile(float* memory, int tile, int consumer) {
  const std::int64_t place =
      (std::int64_t{tile} * blocks_of_cluster + block_in_cluster()) * consumers + consumer;
  return reinterpret_cast<float4*>(memory) + place * (Config::sums / 4 * warpgroup);
}
template <class Config>
__device__ float4* handed_sums(const TermProducts& products, const Piece& piece, int consumer) {
  return sums_of_tile<Config>(products.partial_sums, products.walk.shared(piece), consumer);
}
__device__ inline std::uint32_t* parts_added(const TermProducts& products, const Piece& piece, int consumer) {
  return products.parts_added +
         (products.walk.shared(piece) * blocks_of_cluster + block_in_cluster()) * consumers + consumer;
}

template <int Count>
__device__ void store_sums(float4* memory, const float (&sums)[Count], int thread) {
#pragma unroll
  for (int i = 0; i < Count / 4; ++i)
    memory[i * warpgroup + thread] = {sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]};
}

// use(sum, stored sum) for each.
template <int Count, class Use>
__device__ void read_sums(const float4* memory, float (&sums)[Count], int thread, const Use& use) {
#pragma unroll
  for (int i = 0; i < Count / 4; ++i) {
    const float4 four = __ldcg(memory + i * warpgroup + thread);
    use(sums[4 * i], four.x);
    use(sums[4 * i + 1], four.y);
    use(sums[4 * i + 2], four.z);
    use(sums[4 * i + 3], four.w);
  }
}

template <class Config>
__device__ void hand_over(const float (&sums)[Config::sums], const TermProducts& products, const Piece& piece,
                          int consumer, int thread) {
  store_sums(handed_sums<Config>(products, piece, consumer), sums, thread);
  __threadfence();
  meet(first_warpgroup + consumer, warpgroup);
  if (thread == 0)
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(parts_added(products, piece, consumer)),
                 "r"(piece.part + 1)
                 : "memory");
}

// The part before this one is the work of a cluster that began before this one did (Walk), so that the wait ends.
template <class Config>
__device__ void take_over(float (&sums)[Config::sums], const TermProducts& products, const Piece& piece,
                          int consumer, int thread) {
  const std::uint32_t* parts = parts_added(products, piece, consumer);
  int added = 0;
  while (added < piece.part)
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(added) : "l"(parts) : "memory");
  read_sums(handed_sums<Config>(products, piece, consumer), sums, thread,
            [](float& sum, float handed) { sum = handed; });
}

// Sums of the segments of k before the present one stay in memory: registers have no room for them. Those of a tile that has
// parts go from cluster to cluster with it.
template <class Config>
__device__ float4* earlier_segments(const TermProducts& products, const Piece& piece, int cluster,
                                    int consumer) {
  const int shared = products.walk.shared(piece);
  const int tile = shared < 0 ? cluster : products.walk.clusters + shared;
  return sums_of_tile<Config>(products.segment_sums, tile, consumer);
}

template <class Config>
__device__ void add_earlier_segments(float (&sums)[Config::sums], const float4* earlier, int thread) {
  read_sums(earlier, sums, thread, [](float& sum, float before) { sum = before + sum; });
}

// At the end of a segment that is not the last: its sums join those of the earlier ones, and the next begins.
template <class Config>
__device__ void end_segment(float (&sums)[Config::sums], float4* earlier, bool is_first, int thread) {
  if (!is_first) add_earlier_segments<Config>(sums, earlier, thread);
  store_sums(earlier, sums, thread);
#pragma unroll
  for (float& sum : sums) sum = 0;
}

// All blocks of a piece, on top of the sums that are there.
template <class Config>
__device__ void add_blocks(float (&sums)[Config::sums], const TermProducts& products, const Piece& piece,
                           Turns<Config>& turns, const int& cluster, int consumer) {
  float inside[Config::sums];
  int block = products.walk.first_block(piece);
#pragma unroll 1
  while (block < products.walk.end_block(piece)) {
    const int rest_of_segment = products.segment_blocks - block % products.segment_blocks;
    const int stop = min(products.walk.end_block(piece), block + rest_of_segment);
    if (products.sums_of_block == 2) {
#pragma unroll 1
      for (; block < stop; ++block, turns.next())
        add_block<Config, 2>(sums, inside, turns, consumer, products.rescale);
    } else {
#pragma unroll 1
      for (; block < stop; ++block, turns.next())
        add_block<Config, 1>(sums, inside, turns, consumer, products.rescale);
    }
    if (block % products.segment_blocks == 0 && block < products.walk.blocks) {
      end_segment<Config>(sums, earlier_segments<Config>(products, piece, cluster, consumer),
                          block == products.segment_blocks, thread_number() % warpgroup);
    }
  }
}

// Warps beside the thread that produces: what the consumers need at the end of every tile, before they are there.
template <class Config>
__device__ void find_ends(const TermProducts& products, TermShared<Config>& shared) {
  const int thread = static_cast<int>(threadIdx.x) - 32;
  Pieces pieces(products.walk);
  Piece piece;
  unsigned parity = 0;
  while (pieces.next(shared.cluster, piece)) {
    if (is_left_out(products, piece) || products.walk.hands_over(piece)) continue;
    const TilePlace place = products.walk.place(piece);
    const std::int64_t row =
        std::int64_t{place.row * blocks_of_cluster + block_in_cluster()} * block_tile_rows;
    shared.end_read.wait(parity ^ 1);
    shared.end.find(products.tile, {products.shares_a, products.shares_b}, place.entry,
                    {row, block_tile_rows}, {std::int64_t{place.column} * Config::columns, Config::columns},
                    thread);
    __syncwarp();
    if (thread % 32 == 0) shared.end_known.arrive();
    parity ^= 1;
  }
}

template <class Config>
__device__ void consume(const TermProducts& products, TermShared<Config>& shared, std::uint32_t tiles) {
  const int consumer = uniform(static_cast<int>(threadIdx.x) / warpgroup - 1);
  Turns<Config> turns(shared, tiles);
  Pieces pieces(products.walk);
  Piece piece;
  unsigned end_parity = 0;
  float sums[Config::sums];
  if (consumer == consumers - 1) pass_turn(consumer);
  while (pieces.next(shared.cluster, piece)) {
    if (is_left_out(products, piece)) continue;
    if (products.walk.continues(piece)) {
      take_over<Config>(sums, products, piece, consumer, thread_number() % warpgroup);
    } else {
#pragma unroll
      for (float& sum : sums) sum = 0;
    }
    add_blocks<Config>(sums, products, piece, turns, shared.cluster, consumer);
    if (products.walk.hands_over(piece)) {
      hand_over<Config>(sums, products, piece, consumer, thread_number() % warpgroup);
    } else {
      if (products.segment_blocks < products.walk.blocks) {
        add_earlier_segments<Config>(sums,
                                     earlier_segments<Config>(products, piece, shared.cluster, consumer),
                                     thread_number() % warpgroup);
      }
      shared.end_known.wait(end_parity);
      put_entries<Config::format == FormatId::fp16>(sums, products.tile, shared.end, consumer * 64,
                                                    thread_number() - warpgroup, consumers * warpgroup);
      __syncwarp();
      if (thread_number() % 32 == 0) shared.end_read.arrive();
      end_parity ^= 1;
    }
  }
}

template <class Config>
__device__ void multiply_terms(const TensorMap& a, const TensorMap& b, const TermProducts& products) {
  extern __shared__ unsigned char memory[];
  __shared__ TermShared<Config> shared;
  const std::uint32_t tiles = aligned_tiles(memory);
  if (products.tile.condition.known && are_left_out(products.tile.condition, products.walk.entries))
    return leave_in_order();
  begin_cluster(shared);
  if (products.walk.parts > 1) number_cluster(shared.cluster, products.clusters_begun);
  divide_work<Config>(
      [&] {
        if (threadIdx.x == 0) {
          produce<Config>(a, b, products, shared, tiles);
        } else if (threadIdx.x >= 32) {
          find_ends(products, shared);
        }
      },
      [&] { consume<Config>(products, shared, tiles); });
}

}  // namespace kintsugi::core::cuda
