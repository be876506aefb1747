// Parts of C that native products by the library's kernels write without a product.
#pragma once

#include <cstdint>
#include <limits>

#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

template <class T>
__device__ T nan_element() {
  constexpr RealOf<T> nan = std::numeric_limits<RealOf<T>>::quiet_NaN();
  if constexpr (is_complex<T>) {
    return {nan, nan};
  } else {
    return nan;
  }
}

// True if the thread block's part of C needs no product: it becomes NaN if no candidate was selected, and
// beta C if alpha is 0.
template <class T>
__device__ bool needs_no_product(const DeviceCondition& condition, const Scalars<T>& scalars) {
  return scalars.alpha == T(0) ||
         (condition.selection != nullptr && condition.candidate == DeviceSelection::none);
}
// Writes a part of C for which needs_no_product() is true. Threads 0 ... threads - 1 share the elements.
template <class T>
__device__ void write_without_product(const DeviceCondition& condition, const Scalars<T>& scalars,
                                      const MatrixView<T>& c, int threads) {
  // needs_no_product() has the same condition. It is repeated here, because a common function would change
  // the order of instructions in all SIMT kernels.
  const bool nothing_selected =
      condition.selection != nullptr && condition.candidate == DeviceSelection::none;
  if (!nothing_selected && scalars.beta == T(1)) return;  // 1 * NaN would lose the NaN's bits
  const auto rows = static_cast<int>(c.rows);
  const auto columns = static_cast<int>(c.columns);
  for (int e = static_cast<int>(threadIdx.x); e < rows * columns; e += threads) {
    T& element = c(e % rows, e / rows);
    if (nothing_selected) {
      element = nan_element<T>();
    } else {
      element = scalars.beta == T(0) ? T(0) : times(scalars.beta, element);
    }
  }
}

// Row and column of an element in a thread block's part of C.
struct Position {
  int row;
  int column;
};

}  // namespace kintsugi::core::cuda
