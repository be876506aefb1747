// Kernels that turn exact sums into real elements of C.
#include "engines/cuda/ozaki1/exact_sums.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_FINISH_SUMS(finish_exact_f32, float, ExactSums)
KINTSUGI_FINISH_SUMS(finish_exact_f64, double, ExactSums)

}  // namespace kintsugi::core::cuda
