// Recombination of residues: src/recombine/residues.cpp for one tile and the moduli that so many limbs hold, special
// values included. A file for each number of limbs: each takes its time to be compiled.
#pragma once

#include "arith/remainder.hpp"
#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

// Of an entry's parts.
template <class T, int Limbs>
struct EntryIntegers {
  ExactNumber<Limbs> part[parts_of<T>];
};

// alpha and beta need wider numbers than AB alone: in a function of its own they cost the others no registers.
template <class T, int Limbs>
__device__ __noinline__ void put_general_entry(EntryIntegers<T, Limbs> exact, T alpha, T beta, T* entry) {
  const T* old = beta == T(0) ? nullptr : entry;
  if constexpr (is_complex<T>) {
    *entry = exact_epilogue(exact.part[0], exact.part[1], alpha, beta, old);
  } else {
    *entry = exact_epilogue(exact.part[0], alpha, beta, old);
  }
}

template <class T, int Limbs>
class Residues {
 public:
  static constexpr int at_once = 1;
  static constexpr int parts = static_cast<int>(parts_of<T>);

  using Sums = EntryIntegers<T, Limbs>;

  __device__ Residues(const ResidueSums& sums, const RemainderTable<Limbs>& table)
      : sums_(sums), table_(table) {}

  __device__ void add_up(std::int64_t i, const std::int64_t (&j)[1], Sums (&result)[1]) const {
    const std::uint8_t* residue = sums_.data + i + parts * j[0] * sums_.rows;
    RemainderSum<Limbs> sums[parts];
#pragma unroll
    for (int t = 0; t < RemainderTable<Limbs>::most; ++t) {  // constants stand in instructions
      if (t >= table_.count) break;
#pragma unroll
      for (int p = 0; p < parts; ++p)
        sums[p].add(table_.of[t], __ldg(residue + t * sums_.group_stride + p * sums_.rows));
    }
#pragma unroll
    for (int p = 0; p < parts; ++p) result[0].part[p] = sums[p].number(table_);
  }

  __device__ static void write(Sums& sums, int row_scale, const VectorRange* columns,
                               const Scalars<T>& scalars, T* entry) {
#pragma unroll
    for (int p = 0; p < parts; ++p) sums.part[p].exponent = -(row_scale + columns[p].scale);
    if (scalars.alpha != T(1) || scalars.beta != T(0)) {
      put_general_entry(sums, scalars.alpha, scalars.beta, entry);
    } else if constexpr (is_complex<T>) {
      *entry = {rounded<RealOf<T>>(sums.part[0]), rounded<RealOf<T>>(sums.part[1])};
    } else {
      *entry = rounded<T>(sums.part[0]);
    }
  }

 private:
  const ResidueSums& sums_;
  const RemainderTable<Limbs>& table_;
};

#define KINTSUGI_RESIDUES(name, T, limbs)                                                     \
  extern "C" __global__ void __launch_bounds__(tile_threads)                                  \
      name(const __grid_constant__ DeviceTile tile, const __grid_constant__ ResidueSums sums, \
           const __grid_constant__ RemainderTable<limbs> table) {                             \
    recombine_tile<T>(tile, Residues<T, limbs>(sums, table));                                 \
  }

#define KINTSUGI_RESIDUES_OF_LIMBS(limbs)                \
  KINTSUGI_RESIDUES(residues_f32, float, limbs)          \
  KINTSUGI_RESIDUES(residues_f64, double, limbs)         \
  KINTSUGI_RESIDUES(residues_c32, Complex<float>, limbs) \
  KINTSUGI_RESIDUES(residues_c64, Complex<double>, limbs)

}  // namespace kintsugi::core::cuda
