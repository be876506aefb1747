// Recombination of sums of 52-bit words, special values included. The host's counterpart are the exact sums
// of src/recombine/weighted.cpp.
#include "arith/weighted_sum.hpp"
#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/recombine/elements.cuh"

namespace kintsugi::core::cuda {

// Recombination (elements.cuh) of sums of words: up to four words an element, or in each of its parts. The
// sums are added exactly.
template <class T>
class Words {
 public:
  static constexpr int limbs = 7;
  static constexpr int parts = static_cast<int>(parts_of<T>);

  __device__ explicit Words(const WeightedSums& sums) : sums_(sums) {}

  __device__ void write_finite(std::int64_t i, std::int64_t j, int row_scale, const VectorRange* column,
                               const Scalars<T>& scalars, T* element) const {
    ExactNumber<limbs> exact[parts];
#pragma unroll 1
    for (int p = 0; p < parts; ++p) {
      WordSum<limbs> sum(sums_.smallest_exponent);
      const auto* part = static_cast<const Integer128*>(sums_.data) + i + (parts * j + p) * sums_.rows;
      for (int g = 0; g < sums_.groups; ++g) sum.add(sums_.exponents[g], part[g * sums_.group_stride]);
      exact[p] = sum.value();
      exact[p].exponent -= row_scale + column[p].scale;
    }
    write_exact_element(exact, scalars, element);
  }

 private:
  const WeightedSums& sums_;
};

#define KINTSUGI_WORDS(name, T)                                                                  \
  extern "C" __global__ void __launch_bounds__(elements_threads)                                 \
      name(const __grid_constant__ DeviceTile tile, const __grid_constant__ WeightedSums sums) { \
    recombine_elements<T>(tile, Words<T>(sums));                                                 \
  }
KINTSUGI_WORDS(recombine_f32_words, float)
KINTSUGI_WORDS(recombine_f64_words, double)
KINTSUGI_WORDS(recombine_c32_words, Complex<float>)
KINTSUGI_WORDS(recombine_c64_words, Complex<double>)
#undef KINTSUGI_WORDS

}  // namespace kintsugi::core::cuda
