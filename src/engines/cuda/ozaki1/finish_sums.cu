// Kernels that turn the sums of a tile (sums.cuh) into elements of C: exact sums, rounded once, and sums of
// products in FP64.
#include "arith/epilogue.hpp"
#include "engines/cuda/ozaki1/sums.cuh"

namespace kintsugi::core::cuda {

namespace {

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

// Recombination (recombine/elements.cuh) of FP64 sums.
template <class T>
class RunningSums {
 public:
  __device__ explicit RunningSums(const DeviceProductSums& sums) : sums_(sums) {}

  __device__ void write_finite(std::int64_t i, std::int64_t j, int, const VectorRange*,
                               const Scalars<T>& scalars, T* element) const {
    const T* old = scalars.beta == T(0) ? nullptr : element;
    if constexpr (is_complex<T>) {
      *element =
          epilogue(Complex<double>(part(i, 2 * j), part(i, 2 * j + 1)), scalars.alpha, scalars.beta, old);
    } else {
      *element = epilogue(running_sum(sums_, i, j), exponent(i, j), scalars.alpha, scalars.beta, old);
    }
  }

 private:
  // Exponent of the unit of the sum of row i and vector v.
  __device__ int exponent(std::int64_t i, std::int64_t v) const {
    return exponent_at(sums_.row_exponents, 0, i) + exponent_at(sums_.vector_exponents, 0, v) -
           running_exponent;
  }
  // The value of that sum: a real or imaginary part of an element.
  __device__ double part(std::int64_t i, std::int64_t v) const {
    return times_power_of_two(running_sum(sums_, i, v), exponent(i, v));
  }

  const DeviceProductSums& sums_;
};

}  // namespace

#define KINTSUGI_FINISH_SUMS(name, T, Sums)                      \
  extern "C" __global__ void __launch_bounds__(elements_threads) \
      name(const __grid_constant__ DeviceProductSums sums) {     \
    recombine_elements<T>(sums.tile, Sums<T>(sums));             \
  }
KINTSUGI_FINISH_SUMS(finish_running_f32, float, RunningSums)
KINTSUGI_FINISH_SUMS(finish_running_f64, double, RunningSums)
KINTSUGI_FINISH_SUMS(finish_running_c32, Complex<float>, RunningSums)
KINTSUGI_FINISH_SUMS(finish_running_c64, Complex<double>, RunningSums)
KINTSUGI_FINISH_SUMS(finish_exact_f32, float, ExactSums)
KINTSUGI_FINISH_SUMS(finish_exact_f64, double, ExactSums)
KINTSUGI_FINISH_SUMS(finish_exact_c32, Complex<float>, ExactSums)
KINTSUGI_FINISH_SUMS(finish_exact_c64, Complex<double>, ExactSums)
#undef KINTSUGI_FINISH_SUMS

}  // namespace kintsugi::core::cuda
