// Kernels for complex operands whose elements have up to four 52-bit words in each part.
#include "engines/cuda/recombine/words.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_WORDS(words_in_7_c32, Complex<float>, 7)
KINTSUGI_WORDS(words_in_7_c64, Complex<double>, 7)

}  // namespace kintsugi::core::cuda
