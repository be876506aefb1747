// Elements of C from exact sums, rounded once.
#pragma once

#include "engines/cuda/ozaki1/sums.cuh"

namespace kintsugi::core::cuda {

// Recombination (recombine/elements.cuh) of exact sums.
template <class T>
class ExactSums {
 public:
  __device__ explicit ExactSums(const DeviceProductSums& sums) : sums_(sums) {}

  __device__ void write_finite(std::int64_t i, std::int64_t j, int, const VectorRange*,
                               const Scalars<T>& scalars, T* element) const {
    ExactNumber<DeviceProductSums::limbs> exact[parts];
    for (int part = 0; part < parts; ++part) exact[part] = sum_of(i, parts * j + part);
    write_exact_element(exact, scalars, element);
  }

 private:
  static constexpr int parts = static_cast<int>(parts_of<T>);

  // Sum for row i and vector v of the tile. Its unit is that of the product of the two last slices.
  __device__ ExactNumber<DeviceProductSums::limbs> sum_of(std::int64_t i, std::int64_t v) const {
    const int last = sums_.slices - 1;
    return signed_number(exact_sum(sums_, i, v), exponent_at(sums_.row_exponents, last, i) +
                                                     exponent_at(sums_.vector_exponents, last, v));
  }

  const DeviceProductSums& sums_;
};

}  // namespace kintsugi::core::cuda
