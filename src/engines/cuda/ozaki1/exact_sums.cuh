// Exact sums into elements of C, rounded once.
#pragma once

#include "engines/cuda/ozaki1/sums.cuh"

namespace kintsugi::core::cuda {

template <class T>
class ExactSums {
 public:
  __device__ explicit ExactSums(const DeviceProductSums& sums) : sums_(sums) {}

  __device__ void write_finite(std::int64_t i, std::int64_t j, int, const VectorRange*,
                               const Scalars<T>& scalars, T* element) const {
    ExactNumber<DeviceProductSums::limbs> exact[parts];
    for (int part = 0; part < parts; ++part) exact[part] = number(i, parts * j + part);
    write_exact_element(exact, scalars, element);
  }

 private:
  static constexpr int parts = static_cast<int>(parts_of<T>);

  __device__ ExactNumber<DeviceProductSums::limbs> number(std::int64_t i, std::int64_t v) const {
    const int last = sums_.slices - 1;
    return signed_number(exact_sum(sums_, i, v),
                         exponent_at(sums_.rows, last, i) + exponent_at(sums_.vectors, last, v));
  }

  const DeviceProductSums& sums_;
};

}  // namespace kintsugi::core::cuda
