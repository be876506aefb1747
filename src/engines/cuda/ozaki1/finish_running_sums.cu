// Kernels that turn sums of products in FP64 (sums.cuh) into elements of C.
#include "arith/epilogue.hpp"
#include "engines/cuda/ozaki1/sums.cuh"

namespace kintsugi::core::cuda {

namespace {

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

KINTSUGI_FINISH_SUMS(finish_running_f32, float, RunningSums)
KINTSUGI_FINISH_SUMS(finish_running_f64, double, RunningSums)
KINTSUGI_FINISH_SUMS(finish_running_c32, Complex<float>, RunningSums)
KINTSUGI_FINISH_SUMS(finish_running_c64, Complex<double>, RunningSums)

}  // namespace kintsugi::core::cuda
