// Recombinations that take every entry alone.
#pragma once

#include "engines/cuda/recombine/general_entry.cuh"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

// Recombination::put makes an entry whose vectors are finite.
template <class T, class Recombination>
__device__ void recombine_entries(const DeviceTile& tile, const Recombination& recombination) {
  if (!holds(tile.condition)) return;
  const std::int64_t i = std::int64_t{blockIdx.x} * entries_threads + threadIdx.x;
  if (i >= tile.rows) return;
  const std::int64_t j = blockIdx.y;
  T* entry = &view_of<T>(tile.c, tile.entry)(tile.first_row + i, tile.first_column + j);
  put_any_entry(tile, recombination, Scalars<T>(tile.scalars), i, j, entry);
}

// The parts of an entry, summed exactly, rounded once.
template <class T, int Limbs>
__device__ void put_exact_entry(const ExactNumber<Limbs> (&exact)[parts_of<T>], const Scalars<T>& scalars,
                                T* entry) {
  if (scalars.alpha != T(1) || scalars.beta != T(0))
    return put_general_entry(exact, scalars.alpha, scalars.beta, entry);
  if constexpr (is_complex<T>) {
    *entry = {rounded<RealOf<T>>(exact[0]), rounded<RealOf<T>>(exact[1])};
  } else {
    *entry = rounded<T>(exact[0]);
  }
}

}  // namespace kintsugi::core::cuda
