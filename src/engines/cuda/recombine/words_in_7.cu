// Kernels for real operands whose elements have up to four 52-bit words each.
#include "engines/cuda/recombine/words.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_WORDS(words_in_7_f32, float, 7)
KINTSUGI_WORDS(words_in_7_f64, double, 7)

}  // namespace kintsugi::core::cuda
