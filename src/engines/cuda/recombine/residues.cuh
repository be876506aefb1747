// Recombination of residues: src/recombine/residues.cpp for one tile and the moduli that so many limbs hold, special
// values included. A file for each number of limbs: each takes its time to be compiled.
#pragma once

#include "arith/remainder.hpp"
#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/recombine/general_entry.cuh"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

// Adds up the residues of `count` rows, which lie in a word.
template <class Word, int Limbs, int count>
__device__ void add_up(const std::uint8_t* residues, std::int64_t group_stride,
                       const RemainderTable<Limbs>& table, RemainderSum<Limbs> (&sums)[count]) {
  constexpr int together = RemainderTable<Limbs>::together;
  static_assert(sizeof(Word) == count);
#pragma unroll 1
  for (int first = 0; first < table.count; first += together) {
    Word words[together];
#pragma unroll
    for (int t = 0; t < together; ++t) {
      words[t] = first + t < table.count ? *reinterpret_cast<const Word*>(residues) : Word{0};
      residues += group_stride;
    }
#pragma unroll
    for (int t = 0; t < together; ++t) {
#pragma unroll
      for (int r = 0; r < count; ++r) sums[r].add(table.of[first + t], words[t] >> 8 * r & 0xffU);
    }
  }
}

template <class T, int Limbs>
class Residues {
 public:
  static constexpr int parts = static_cast<int>(parts_of<T>);

  using Table = RemainderTable<Limbs>;

  __device__ Residues(const ResidueSums& sums, const Table& table) : sums_(sums), table_(table) {}

  __device__ static bool takes(const Scalars<T>& scalars) {
    return scalars.alpha == T(1) && scalars.beta == T(0);
  }

  __device__ void put_block(const Block<T>& block, const Scalars<T>&) const {
#pragma unroll 1
    for (int e = 0; e < Block<T>::columns_each; ++e) {
      if (!block.has(e)) continue;
      Together<T> entries;
      const std::uint8_t* residues = data(block.tile_row(), block.tile_column(e));
      if constexpr (is_complex<T>) {
        RealOf<T> part[parts][rows_each];
#pragma unroll
        for (int p = 0; p < parts; ++p) round_parts(block, e, p, residues, part[p]);
#pragma unroll
        for (int r = 0; r < rows_each; ++r) entries.of[r] = {part[0][r], part[1][r]};
      } else {
        round_parts(block, e, 0, residues, entries.of);
      }
      block.write(e, entries);
    }
  }

  __device__ void put(std::int64_t i, std::int64_t j, int row_scale, const VectorRange* column,
                      const Scalars<T>& scalars, T* entry) const {
    ExactNumber<Limbs> exact[parts];
#pragma unroll 1
    for (int p = 0; p < parts; ++p) {
      RemainderSum<Limbs> sum[1];
      add_up<std::uint8_t>(data(i, j) + p * sums_.rows, sums_.group_stride, table_, sum);
      exact[p] = sum[0].number(table_);
      exact[p].exponent = -(row_scale + column[p].scale);
    }
    put_general_entry(exact, scalars.alpha, scalars.beta, entry);
  }

 private:
  __device__ const std::uint8_t* data(std::int64_t i, std::int64_t j) const {
    return sums_.data + i + parts * j * sums_.rows;
  }

  // Part p of the thread's rows of column e.
  __device__ void round_parts(const Block<T>& block, int e, int p, const std::uint8_t* residues,
                              RealOf<T> (&result)[rows_each]) const {
    RemainderSum<Limbs> sums[rows_each];
    add_up<std::uint32_t>(residues + p * sums_.rows, sums_.group_stride, table_, sums);
#pragma unroll
    for (int r = 0; r < rows_each; ++r) {
      ExactNumber<Limbs> exact = sums[r].number(table_);
      exact.exponent = block.exponent(r, e, p);
      result[r] = rounded<RealOf<T>>(exact);
    }
  }

  const ResidueSums& sums_;
  const Table& table_;
};

// `blocks` on a multiprocessor at least: as many as there are registers for.
#define KINTSUGI_RESIDUES(name, T, limbs, blocks)                                             \
  extern "C" __global__ void __launch_bounds__(block_threads, blocks)                         \
      name(const __grid_constant__ DeviceTile tile, const __grid_constant__ ResidueSums sums, \
           const __grid_constant__ RemainderTable<limbs> table) {                             \
    recombine_tile<T>(tile, Residues<T, limbs>(sums, table));                                 \
  }

#define KINTSUGI_REAL_RESIDUES(limbs, blocks)           \
  KINTSUGI_RESIDUES(residues_f32, float, limbs, blocks) \
  KINTSUGI_RESIDUES(residues_f64, double, limbs, blocks)

#define KINTSUGI_COMPLEX_RESIDUES(limbs, blocks)                 \
  KINTSUGI_RESIDUES(residues_c32, Complex<float>, limbs, blocks) \
  KINTSUGI_RESIDUES(residues_c64, Complex<double>, limbs, blocks)

}  // namespace kintsugi::core::cuda
