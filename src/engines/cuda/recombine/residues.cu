// Kernels that recombine residues in integers of several limbs, and those that check every element. Each
// image (shards.txt) has those for one definition. `blocks` is the least number of thread blocks per SM: as
// many as registers allow.
#include "engines/cuda/recombine/checks.cuh"
#include "engines/cuda/recombine/limbs.cuh"

namespace kintsugi::core::cuda {

#define KINTSUGI_RECOMBINE(name, T, blocks, ...)                                                  \
  extern "C" __global__ void __launch_bounds__(block_threads, blocks)                             \
      name(const __grid_constant__ DeviceTile tile, const __grid_constant__ __VA_ARGS__ source) { \
    recombine_tile<T>(tile, Residues<T, __VA_ARGS__>(source));                                    \
  }
#define KINTSUGI_CHECK(name, T, blocks, ...)                                                             \
  extern "C" __global__ void __launch_bounds__(block_threads, blocks)                                    \
      name(const __grid_constant__ DeviceTile tile, const __grid_constant__ __VA_ARGS__ source,          \
           const __grid_constant__ DeviceCheck check, const __grid_constant__ DeviceOpenElements open) { \
    recombine_checked_tile<T>(tile, source, check, open);                                                \
  }

#ifdef KINTSUGI_F32
KINTSUGI_RECOMBINE(recombine_f32_limbs_2, float, 3, ResiduesOfReals<2>)
KINTSUGI_RECOMBINE(recombine_f32_limbs_6, float, 1, ResiduesOfReals<6>)
KINTSUGI_CHECK(check_f32_limbs_3, float, 2, ResiduesOfReals<3>)
KINTSUGI_CHECK(check_f32_limbs_6, float, 1, ResiduesOfReals<6>)
#endif
#ifdef KINTSUGI_F64  // fewer moduli: digits.cu (recombine_f64() in residues.cpp)
KINTSUGI_RECOMBINE(recombine_f64_limbs_3, double, 2, ResiduesOfReals<3>)
KINTSUGI_RECOMBINE(recombine_f64_limbs_6, double, 1, ResiduesOfReals<6>)
KINTSUGI_CHECK(check_f64_limbs_3, double, 2, ResiduesOfReals<3>)
KINTSUGI_CHECK(check_f64_limbs_6, double, 1, ResiduesOfReals<6>)
#endif
#ifdef KINTSUGI_C32
KINTSUGI_RECOMBINE(recombine_c32_limbs_2, Complex<float>, 2, ResiduesOfElements<2>)
KINTSUGI_RECOMBINE(recombine_c32_limbs_6, Complex<float>, 1, ResiduesOfAnyElements)
KINTSUGI_CHECK(check_c32_limbs_3, Complex<float>, 1, ResiduesOfElements<3>)
#endif
#ifdef KINTSUGI_C64  // fewer slices: digits.cu (recombine_c64() in residues.cpp)
KINTSUGI_RECOMBINE(recombine_c64_limbs_3, Complex<double>, 1, ResiduesOfElements<3>)
KINTSUGI_RECOMBINE(recombine_c64_limbs_6, Complex<double>, 1, ResiduesOfAnyElements)
KINTSUGI_CHECK(check_c64_limbs_3, Complex<double>, 1, ResiduesOfElements<3>)
#endif

// AB of real FP64 elements of up to 24 moduli, without any allowed error.
#ifdef KINTSUGI_CHECKED_DIGITS
extern "C" __global__ void __launch_bounds__(block_threads, 2) check_f64_digits(
    const __grid_constant__ DeviceTile tile, const __grid_constant__ ResiduesOfReals<wide_digit_limbs> source,
    const __grid_constant__ WideDigitTables tables, const __grid_constant__ WideFractions fractions,
    const __grid_constant__ DeviceCheck check, const __grid_constant__ DeviceOpenElements open) {
  const CheckedBounds bounds(tables.table[0].count, check, open);
  const WideDigitResidues<CheckedBounds> exact(source, tables, bounds);
  add_open_elements(recombine_by_fractions(tile, exact, fractions), open);
}
#endif

}  // namespace kintsugi::core::cuda
