// Kernels that turn the sums of a tile (sums.cuh) into elements of C: exact sums, rounded once, and sums of
// products in FP64.
#include "arith/epilogue.hpp"
#include "engines/cuda/ozaki1/sums.cuh"

namespace kintsugi::core::cuda {

namespace {

// Recombination (recombine/elements.cuh) of both kinds of sums.
template <class T>
class ProductSums {
 public:
  __device__ explicit ProductSums(const DeviceProductSums& sums) : sums_(sums) {}

  __device__ void write_finite(std::int64_t i, std::int64_t j, int, const VectorRange*,
                               const Scalars<T>& scalars, T* element) const {
    if (sums_.exact) {
      ExactNumber<DeviceProductSums::limbs> exact[parts];
      for (int part = 0; part < parts; ++part) exact[part] = exact_part(i, parts * j + part);
      return write_exact_element(exact, scalars, element);
    }
    const T* old = scalars.beta == T(0) ? nullptr : element;
    if constexpr (is_complex<T>) {
      const Complex<double> sum(running_part(i, 2 * j), running_part(i, 2 * j + 1));
      *element = epilogue(sum, scalars.alpha, scalars.beta, old);
    } else {
      *element = epilogue(running_part(i, j), scalars.alpha, scalars.beta, old);
    }
  }

 private:
  static constexpr int parts = static_cast<int>(parts_of<T>);

  // Exponent of the product of slice s of row i and slice s of vector v.
  __device__ int exponent(int s, std::int64_t i, std::int64_t v) const {
    return exponent_at(sums_.row_exponents, s, i) + exponent_at(sums_.vector_exponents, s, v);
  }
  // Exact sum for row i and vector v of the tile. Its unit is that of the product of the two last slices.
  __device__ ExactNumber<DeviceProductSums::limbs> exact_part(std::int64_t i, std::int64_t v) const {
    return signed_number(exact_sum(sums_, i, v), exponent(sums_.slices - 1, i, v));
  }
  // The FP64 sum: a real or imaginary part of an element.
  __device__ double running_part(std::int64_t i, std::int64_t v) const {
    return times_power_of_two(running_sum(sums_, i, v), exponent(0, i, v) - running_exponent);
  }

  const DeviceProductSums& sums_;
};

}  // namespace

#define KINTSUGI_RECOMBINE(name, T)                                 \
  extern "C" __global__ void __launch_bounds__(elements_threads, 2) \
      name(const __grid_constant__ DeviceProductSums sums) {        \
    recombine_elements<T>(sums.tile, ProductSums<T>(sums));         \
  }
KINTSUGI_RECOMBINE(recombine_f32_products, float)
KINTSUGI_RECOMBINE(recombine_f64_products, double)
KINTSUGI_RECOMBINE(recombine_c32_products, Complex<float>)
KINTSUGI_RECOMBINE(recombine_c64_products, Complex<double>)
#undef KINTSUGI_RECOMBINE

}  // namespace kintsugi::core::cuda
