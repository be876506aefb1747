// FP64 and complex FP64 products on tensor cores.
#include "engines/cuda/arch/hopper/tiles.hpp"
#include "engines/cuda/gemm/dmma.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_DMMA(multiply_f64_dmma_128x128_k, double, hopper::dmma_tiles_f64[0], along_k)
KINTSUGI_DMMA(multiply_f64_dmma_64x64_k, double, hopper::dmma_tiles_f64[1], along_k)
KINTSUGI_DMMA(multiply_f64_dmma_32x32_k, double, hopper::dmma_tiles_f64[2], along_k)
KINTSUGI_DMMA(multiply_f64_dmma_128x128_n, double, hopper::dmma_tiles_f64[0], in_panels)
KINTSUGI_DMMA(multiply_f64_dmma_64x64_n, double, hopper::dmma_tiles_f64[1], in_panels)
KINTSUGI_DMMA(multiply_f64_dmma_32x32_n, double, hopper::dmma_tiles_f64[2], in_panels)
KINTSUGI_DMMA(multiply_c64_dmma_128x64, Complex<double>, hopper::dmma_tiles_c64[0], along_k)
KINTSUGI_DMMA(multiply_c64_dmma_64x32, Complex<double>, hopper::dmma_tiles_c64[1], along_k)
KINTSUGI_DMMA(multiply_c64_dmma_32x32, Complex<double>, hopper::dmma_tiles_c64[2], along_k)

}  // namespace kintsugi::core::cuda
