// Kernels that turn exact sums into complex elements of C.
#include "engines/cuda/ozaki1/exact_sums.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_FINISH_SUMS(finish_exact_c32, Complex<float>, ExactSums)
KINTSUGI_FINISH_SUMS(finish_exact_c64, Complex<double>, ExactSums)

}  // namespace kintsugi::core::cuda
