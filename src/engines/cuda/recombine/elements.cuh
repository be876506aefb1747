// Recombinations in which each thread computes one element.
#pragma once

#include "arith/complex.hpp"
#include "base/embedding.hpp"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

// Writes an element for any alpha and beta, which need wider numbers than AB alone. These numbers are on the
// stack, and the function is not inlined, so that other elements do not need more registers.
template <class T, int Limbs>
__device__ __noinline__ void write_general_element(const ExactNumber<Limbs>& exact, T alpha, T beta,
                                                   T* element) {
  *element = exact_epilogue(exact, alpha, beta, beta == T(0) ? nullptr : element);
}

// The same for a complex element. Its parts are passed by value: their address on the stack would occupy a
// register throughout the kernel.
template <class T, int Limbs>
__device__ __noinline__ void write_general_element(ExactNumber<Limbs> real, ExactNumber<Limbs> imaginary,
                                                   T alpha, T beta, T* element) {
  *element = exact_epilogue(real, imaginary, alpha, beta, beta == T(0) ? nullptr : element);
}

// Recombines the thread's element of a tile. Recombination::write_finite must write an element whose vectors
// are finite.
template <class T, class Recombination>
__device__ void recombine_elements(const DeviceTile& tile, const Recombination& recombination) {
  if (!holds(tile.condition)) return;
  const std::int64_t i = std::int64_t{blockIdx.x} * elements_threads + threadIdx.x;
  if (i >= tile.rows) return;
  const std::int64_t j = blockIdx.y;
  T* element = &view_of<T>(tile.c, tile.item)(tile.first_row + i, tile.first_column + j);
  write_any_element(tile, recombination, Scalars<T>(tile.scalars), i, j, element);
}

// Writes an element from the exact sums of its parts. It is rounded once, after alpha, beta and C were taken
// into account.
template <class T, int Limbs>
__device__ void write_exact_element(const ExactNumber<Limbs> (&exact)[parts_of<T>], const Scalars<T>& scalars,
                                    T* element) {
  const bool is_general = scalars.alpha != T(1) || scalars.beta != T(0);
  if constexpr (is_complex<T>) {
    if (is_general) return write_general_element(exact[0], exact[1], scalars.alpha, scalars.beta, element);
    *element = {rounded<RealOf<T>>(exact[0]), rounded<RealOf<T>>(exact[1])};
  } else {
    if (is_general) return write_general_element(exact[0], scalars.alpha, scalars.beta, element);
    *element = rounded<T>(exact[0]);
  }
}

}  // namespace kintsugi::core::cuda
