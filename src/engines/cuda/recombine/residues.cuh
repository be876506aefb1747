// Recombination of residues: src/recombine/residues.cpp for one tile and the moduli that so many limbs hold, special
// values included. A file for each number of limbs: each takes its time to be compiled.
#pragma once

#include "arith/remainder.hpp"
#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/recombine/general_entry.cuh"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

// Residues of `count` rows of two moduli, each as they lie in a word, by pairs of rows: two residues of a row each half.
template <int count, class Word>
__device__ void interleave(Word first, Word second, std::uint32_t (&rows)[divide_up(count, 2)]) {
  if constexpr (count == 4) {
    rows[0] = __byte_perm(first, second, 0x5140);
    rows[1] = __byte_perm(first, second, 0x7362);
  } else {
    static_assert(count == 1);
    rows[0] = first | std::uint32_t{second} << 8;
  }
}

// Residues that are taken in one go.
inline constexpr int residues_together = 16;

// Adds up the residues of `count` rows, which lie in a word.
template <class Word, int Limbs, int Most, int count>
__device__ void add_up(const std::uint8_t* residues, std::int64_t group_stride,
                       const RemainderTable<Limbs, Most>& table, RemainderSum<Limbs> (&sums)[count]) {
  static_assert(sizeof(Word) == count);
#pragma unroll 1
  for (int first = 0; first < table.count; first += residues_together) {
    Word words[residues_together];
#pragma unroll
    for (int t = 0; t < residues_together; ++t) {
      words[t] = first + t < table.count ? *reinterpret_cast<const Word*>(residues) : Word{0};
      residues += group_stride;
    }
#pragma unroll
    for (int t = 0; t < residues_together; t += 2) {
      if (first + t >= table.count) break;
      const RemainderPair<Limbs>& pair = table.of[(first + t) / 2];
      std::uint32_t rows[divide_up(count, 2)];
      interleave<count>(words[t], words[t + 1], rows);
#pragma unroll
      for (int r = 0; r < count; ++r) sums[r].add(pair, pair.multiple(rows[r / 2], r % 2));
    }
  }
}

// Where the residues of entry (i, j) lie that one of its parts is made of, and their table.
template <class T, int Limbs>
__device__ const std::uint8_t* residues_at(const ResiduesOfParts<Limbs>& of, std::int64_t i, std::int64_t j,
                                           int part) {
  return of.sums.data + i + (parts_of<T> * j + part) * of.sums.rows;
}
template <class T, int Limbs>
__device__ const std::uint8_t* residues_at(const ResiduesOfEntries<Limbs>& of, std::int64_t i, std::int64_t j,
                                           int) {
  return of.sums.data + i + j * of.sums.rows;
}
template <int Limbs>
__device__ const RemainderTable<Limbs>& table_of(const ResiduesOfParts<Limbs>& source, int) {
  return source.of;
}
template <int Limbs>
__device__ const RemainderTable<Limbs, most_entry_slices>& table_of(const ResiduesOfEntries<Limbs>& source,
                                                                    int part) {
  return source.of[part];
}

// The sums of one part of `count` rows from i on, of column j.
template <class T, class Word, class Source, int Limbs, int count>
__device__ void add_up_part(const Source& source, std::int64_t i, std::int64_t j, int part,
                            RemainderSum<Limbs> (&sums)[count]) {
  add_up<Word>(residues_at<T>(source, i, j, part), source.sums.group_stride, table_of(source, part), sums);
}

template <class T, int Limbs, class Source>
class Residues {
 public:
  static constexpr int parts = static_cast<int>(parts_of<T>);

  __device__ explicit Residues(const Source& source) : source_(source) {}

  __device__ static bool takes(const Scalars<T>& scalars) {
    return scalars.alpha == T(1) && scalars.beta == T(0);
  }

  __device__ void put_block(const Block<T>& block, const Scalars<T>&) const {
#pragma unroll 1
    for (int e = 0; e < Block<T>::columns_each; ++e) {
      if (!block.has(e)) continue;
      Together<T> entries;
      if constexpr (is_complex<T>) {
        RealOf<T> part[parts][rows_each];
#pragma unroll
        for (int p = 0; p < parts; ++p) round_part(block, e, p, part[p]);
#pragma unroll
        for (int r = 0; r < rows_each; ++r) entries.of[r] = {part[0][r], part[1][r]};
      } else {
        round_part(block, e, 0, entries.of);
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
      add_up_part<T, std::uint8_t>(source_, i, j, p, sum);
      exact[p] = sum[0].number(table_of(source_, p), -(row_scale + column[p].scale));
    }
    put_general_entry(exact, scalars.alpha, scalars.beta, entry);
  }

 private:
  // Part p of the thread's rows of column e.
  __device__ void round_part(const Block<T>& block, int e, int p, RealOf<T> (&result)[rows_each]) const {
    RemainderSum<Limbs> sums[rows_each];
    add_up_part<T, std::uint32_t>(source_, block.tile_row(), block.tile_column(e), p, sums);
#pragma unroll
    for (int r = 0; r < rows_each; ++r) {
      result[r] = rounded_ordinary<RealOf<T>>(sums[r].number(table_of(source_, p), block.exponent(r, e, p)));
    }
  }

  const Source& source_;
};

// `blocks` on a multiprocessor at least: as many as there are registers for.
#define KINTSUGI_RESIDUES(name, T, limbs, blocks, Source)                                           \
  extern "C" __global__ void __launch_bounds__(block_threads, blocks)                               \
      name(const __grid_constant__ DeviceTile tile, const __grid_constant__ Source<limbs> source) { \
    recombine_tile<T>(tile, Residues<T, limbs, Source<limbs>>(source));                             \
  }

#define KINTSUGI_REAL_RESIDUES(limbs, blocks)                            \
  KINTSUGI_RESIDUES(residues_f32, float, limbs, blocks, ResiduesOfParts) \
  KINTSUGI_RESIDUES(residues_f64, double, limbs, blocks, ResiduesOfParts)

#define KINTSUGI_COMPLEX_RESIDUES(limbs, blocks, Source)                 \
  KINTSUGI_RESIDUES(residues_c32, Complex<float>, limbs, blocks, Source) \
  KINTSUGI_RESIDUES(residues_c64, Complex<double>, limbs, blocks, Source)

}  // namespace kintsugi::core::cuda
