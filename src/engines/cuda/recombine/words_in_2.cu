// Kernels for operands whose elements have one 52-bit word each. Their sums fit into 2 limbs.
#include "engines/cuda/recombine/words.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_WORDS(words_in_2_f32, float, 2)
KINTSUGI_WORDS(words_in_2_f64, double, 2)
KINTSUGI_WORDS(words_in_2_c32, Complex<float>, 2)
KINTSUGI_WORDS(words_in_2_c64, Complex<double>, 2)

}  // namespace kintsugi::core::cuda
