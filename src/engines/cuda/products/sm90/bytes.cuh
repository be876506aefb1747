// Products of int8 slices, all groups of a schedule in one launch: the products of a group's terms are added in int32, and
// their sums leave as integers of 64 bits or, reduced in registers, as a byte an entry. Two blocks of threads in a cluster
// share the slices of C's rows or columns; in each one thread copies tiles to shared memory, and two warpgroups multiply.
#pragma once

#include "arith/remainder.hpp"
#include "engines/cuda/products/sm90/byte_tiles.hpp"
#include "engines/cuda/products/sm90/wgmma.cuh"
#include "engines/cuda/recombine/tile.cuh"
#include "recombine/accumulators.hpp"
#include "schedule/accumulator.hpp"

namespace kintsugi::core::cuda {

template <ByteTile Tile, SumType Type>
struct ByteConfig {
  static constexpr ByteTile tile = Tile;
  static constexpr bool reduces = Type == SumType::residue;
  static constexpr int consumers = 2;  // warpgroups
  static_assert(ByteTile::threads == warpgroup * (1 + consumers));
  static constexpr int columns = tile.block_columns / consumers;
  static constexpr int instructions = columns / 64;  // of a step of k
  static constexpr int sums = tile.block_rows / 2;   // of a thread and an instruction

  // Of a thread; together what a multiprocessor has, but for what it cannot divide.
  static constexpr int consumer_registers = 232;
  static constexpr int producer_registers = 504 - consumers * consumer_registers;

  // Blocks of k that int32 holds the sum of, beside a residue, which is less than a product.
  static constexpr int longest_run = static_cast<int>((int32_safe_products - 1) / ByteTile::block);
};

// Of 64 columns each.
template <class Config>
using ByteSums = std::int32_t[Config::instructions][Config::sums];

template <class Config>
struct ByteShared {
  Barrier full[Config::tile.places];
  Barrier free[Config::tile.places];  // of both blocks of threads

  __device__ void initialise() {
    for (int place = 0; place < Config::tile.places; ++place) {
      full[place].initialise(1);
      free[place].initialise(Config::consumers * blocks_of_cluster);
    }
  }
};

// The places of shared memory as they come one after the other for a thread.
template <class Config>
class Ring {
 public:
  __device__ Ring(ByteShared<Config>& shared, std::uint32_t tiles) : shared_(shared), tiles_(tiles) {}

  __device__ void next() {
    if (++place_ < Config::tile.places) return;
    place_ = 0;
    parity_ ^= 1;
  }
  __device__ int place() const { return place_; }
  __device__ std::uint32_t rows() const { return tiles_ + place_ * Config::tile.place_bytes(); }
  __device__ std::uint32_t columns() const { return rows() + Config::tile.block_rows * ByteTile::block; }
  __device__ Barrier& full() const { return shared_.full[place_]; }
  __device__ void wait_until_full() const { full().wait(parity_); }
  __device__ void wait_until_free() const { shared_.free[place_].wait(parity_ ^ 1); }
  // A warpgroup has multiplied what is there.
  __device__ void release(int place) const {
    const unsigned thread = threadIdx.x % warpgroup;
    if (thread < blocks_of_cluster) shared_.free[place].arrive_in(thread);
  }

 private:
  ByteShared<Config>& shared_;
  std::uint32_t tiles_;
  int place_ = 0;
  unsigned parity_ = 0;
};

// A tile of `Vectors` of a slice, or this block's part of it to both blocks.
template <int Vectors, bool Shared>
__device__ void copy_vectors(std::uint32_t target, const TensorMap& map, Barrier& barrier, int block,
                             int first, int slice) {
  constexpr int part = Vectors / blocks_of_cluster;
  const int k = block * ByteTile::block;
  const int rank = block_in_cluster();
  if constexpr (Shared) {
    copy_tile_to_all(target + rank * part * ByteTile::block, map, barrier, k, first + rank * part, slice,
                     (1 << blocks_of_cluster) - 1);
  } else {
    copy_tile(target, map, barrier, k, first + rank * Vectors, slice);
  }
}

// One thread of a block of threads.
template <class Config>
__device__ void produce(const TensorMap& a, const TensorMap& b, const ByteProducts& products,
                        ByteShared<Config>& shared, std::uint32_t tiles) {
  constexpr ByteTile tile = Config::tile;
  Ring<Config> ring(shared, tiles);
  WholeTiles tiles_of_cluster(products.walk);
  Piece piece;
  while (tiles_of_cluster.next(cluster_number(), piece)) {
    const TilePlace place = products.walk.place(piece);
    const int row = place.row * tile.rows();
    const int column = place.column * tile.columns();
    const int group = products.group(place);
    for (int t = products.first_term[group]; t < products.first_term[group + 1]; ++t) {
      const ByteTerm term = products.terms[t];
#pragma unroll 1
      for (int block = 0; block < products.walk.blocks; ++block, ring.next()) {
        ring.wait_until_free();
        ring.full().arrive_expecting(tile.place_bytes());
        copy_vectors<tile.block_rows, tile.shares_rows>(ring.rows(), a, ring.full(), block, row, term.a);
        copy_vectors<tile.block_columns, !tile.shares_rows>(ring.columns(), b, ring.full(), block, column,
                                                            term.b);
      }
    }
  }
}

// One block of k, put into the queue of the matrix unit.
template <class Config>
__device__ void multiply_block(ByteSums<Config>& sums, const Ring<Config>& ring, int consumer, bool keep) {
  const TileDescriptor rows(ring.rows());
  const TileDescriptor columns(ring.columns() + consumer * Config::columns * ByteTile::block);
  ring.wait_until_full();
  begin_products();
#pragma unroll
  for (int i = 0; i < ByteTile::block / 32; ++i) {
#pragma unroll
    for (int part = 0; part < Config::instructions; ++part)
      multiply_bytes(sums[part], columns + part * 64 * ByteTile::block + i * 32, rows + i * 32,
                     keep || i > 0);
  }
  commit_products();
}

// So many blocks of k. A place is free when the products behind its own are in the queue.
template <class Config>
__device__ void multiply_blocks(ByteSums<Config>& sums, Ring<Config>& ring, int consumer, int blocks,
                                bool keep) {
  multiply_block<Config>(sums, ring, consumer, keep);
  int before = ring.place();
  ring.next();
#pragma unroll 1
  for (int left = blocks - 1; left > 0; --left, ring.next()) {
    multiply_block<Config>(sums, ring, consumer, true);
    wait_for_products<1>();
    ring.release(before);
    before = ring.place();
  }
  wait_for_products<0>();
#pragma unroll
  for (auto& part : sums) settle(part);
  ring.release(before);
}

// Words of four neighbouring threads change places: afterwards a thread has that word of each whose number was its own.
__device__ inline void exchange(std::uint32_t (&words)[4], int thread) {
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2) {
    const bool high = (thread & bit) != 0;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      if ((w & bit) != 0) continue;
      const std::uint32_t other = __shfl_xor_sync(~0U, high ? words[w] : words[w + bit], bit);
      (high ? words[w] : words[w + bit]) = other;
    }
  }
}

// A group's sums in memory: rows and columns are multiples of 16.
template <class T>
struct GroupSums {
  T* data;
  std::int64_t rows;
  std::int64_t columns;

  __device__ GroupSums(const ByteProducts& products, int group)
      : data(reinterpret_cast<T*>(products.sums) + group * products.rows * products.columns),
        rows(products.rows), columns(products.columns) {}
};

// A warpgroup's residues of all rows and 64 columns, one byte each. Of every eight rows a thread has two neighbours (PTX
// ISA: fragment of wgmma's D, here transposed); sixteen are put together by four threads.
template <int Sums>
__device__ void put(const std::int32_t (&residues)[Sums], const GroupSums<std::uint8_t>& group, bool,
                    std::int64_t first_row, std::int64_t first_column, int thread) {
  const std::int64_t row = first_row + thread % 4 * 16;
  const std::int64_t column = first_column + thread / 32 * 16 + thread % 32 / 4;
  std::uint8_t* target = group.data + column * group.rows + row;
#pragma unroll
  for (int c = 0; c < 2; ++c, target += 8 * group.rows) {
#pragma unroll
    for (int part = 0; part < 2 * Sums; part += 64) {
      std::uint32_t words[4];
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const std::int32_t* four = residues + part / 2 + 8 * w + 2 * c;
        words[w] =
            __byte_perm(__byte_perm(four[0], four[1], 0x0040), __byte_perm(four[4], four[5], 0x0040), 0x5410);
      }
      exchange(words, thread);
      const uint4 sixteen{__byte_perm(words[0], words[1], 0x5410), __byte_perm(words[2], words[3], 0x5410),
                          __byte_perm(words[0], words[1], 0x7632), __byte_perm(words[2], words[3], 0x7632)};
      if (row + part < group.rows && column + 8 * c < group.columns)
        __stcs(reinterpret_cast<uint4*>(target + part), sixteen);
    }
  }
}

// The same of integers, the first ones or added to those that are there: pairs as a thread has them.
template <int Sums>
__device__ void put(const std::int32_t (&sums)[Sums], const GroupSums<long long>& group, bool first,
                    std::int64_t first_row, std::int64_t first_column, int thread) {
  const std::int64_t row = first_row + thread % 4 * 2;
  const std::int64_t column = first_column + thread / 32 * 16 + thread % 32 / 4;
  long long* target = group.data + column * group.rows + row;
#pragma unroll
  for (int c = 0; c < 2; ++c, target += 8 * group.rows) {
    if (column + 8 * c >= group.columns) continue;
#pragma unroll
    for (int i = 0; i < Sums / 4; ++i) {
      if (row + 8 * i >= group.rows) continue;
      auto* pair = reinterpret_cast<longlong2*>(target + 8 * i);
      longlong2 result{sums[4 * i + 2 * c], sums[4 * i + 2 * c + 1]};
      if (!first) {
        const longlong2 before = *pair;
        result.x += before.x;
        result.y += before.y;
      }
      __stcs(pair, result);
    }
  }
}

// 64 columns from number Part on.
template <class Config, int Part = 0, class T>
__device__ void put_tile(const ByteSums<Config>& sums, const GroupSums<T>& group, bool first,
                         const TilePlace& place, int consumer, int thread) {
  if constexpr (Part < Config::instructions) {
    constexpr ByteTile tile = Config::tile;
    const int rank = block_in_cluster();
    const std::int64_t row =
        std::int64_t{place.row} * tile.rows() + (tile.shares_rows ? 0 : rank * tile.block_rows);
    const std::int64_t column = std::int64_t{place.column} * tile.columns() +
                                (tile.shares_rows ? rank * tile.block_columns : 0) +
                                consumer * Config::columns + Part * 64;
    put(sums[Part], group, first, row, column, thread);
    put_tile<Config, Part + 1>(sums, group, first, place, consumer, thread);
  }
}

template <class Config>
__device__ void reduce(ByteSums<Config>& sums, const SumReduction& reduction) {
#pragma unroll
  for (auto& part : sums) {
#pragma unroll
    for (std::int32_t& sum : part) sum = static_cast<std::int32_t>(reduction(sum));
  }
}

// Residues go on in their registers from run to run and leave behind the last; integers leave after each.
template <class Config>
__device__ void consume(const ByteProducts& products, ByteShared<Config>& shared, std::uint32_t tiles) {
  const int consumer = uniform(static_cast<int>(threadIdx.x) / warpgroup - 1);
  const int thread = static_cast<int>(threadIdx.x) % warpgroup;
  Ring<Config> ring(shared, tiles);
  WholeTiles tiles_of_cluster(products.walk);
  Piece piece;
  ByteSums<Config> sums;
  while (tiles_of_cluster.next(cluster_number(), piece)) {
    const TilePlace place = products.walk.place(piece);
    const int group = products.group(place);
    const int blocks = products.blocks(group);
#pragma unroll 1
    for (int left = blocks; left > 0; left -= Config::longest_run) {
      const bool first = left == blocks;
      multiply_blocks<Config>(sums, ring, consumer, left < Config::longest_run ? left : Config::longest_run,
                              Config::reduces && !first);
      if constexpr (Config::reduces) {
        reduce<Config>(sums, SumReduction(products.moduli[group]));
      } else {
        put_tile<Config>(sums, GroupSums<long long>(products, group), first, place, consumer, thread);
      }
    }
    if constexpr (Config::reduces)
      put_tile<Config>(sums, GroupSums<std::uint8_t>(products, group), true, place, consumer, thread);
  }
}

template <class Config>
__device__ void multiply_byte_slices(const TensorMap& a, const TensorMap& b, const ByteProducts& products) {
  extern __shared__ unsigned char memory[];
  __shared__ ByteShared<Config> shared;
  const std::uint32_t tiles = aligned_tiles(memory);
  begin_cluster(shared);
  if (!holds(products.condition)) return;
  divide_work<Config>(
      [&] {
        if (threadIdx.x == 0) produce<Config>(a, b, products, shared, tiles);
      },
      [&] { consume<Config>(products, shared, tiles); });
}

}  // namespace kintsugi::core::cuda
