// Elements of C from exact sums, for any alpha and beta.
#pragma once

#include "arith/complex.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core::cuda {

// Writes an element for any alpha and beta, which need wider numbers than AB alone. These numbers are on the
// stack, and the function is not inlined, so that other elements do not need more registers.
template <class T, int Limbs>
__device__ __noinline__ void write_general_element(const ExactNumber<Limbs>* exact, T alpha, T beta,
                                                   T* element) {
  const T* old = beta == T(0) ? nullptr : element;
  if constexpr (is_complex<T>) {
    *element = exact_epilogue(exact[0], exact[1], alpha, beta, old);
  } else {
    *element = exact_epilogue(exact[0], alpha, beta, old);
  }
}

}  // namespace kintsugi::core::cuda
