// The definition of products of operands that are split while they are multiplied, with sequential additions
// in FP32. A kernel for CPUs would gain nothing: without a matrix unit they multiply slices no faster than
// FP32 numbers.
#include "engines/direct_products.hpp"

#include "engines/cpu/products.hpp"

namespace kintsugi::core {

namespace {

struct SequentialUnit {
  using Element = float;

  static float load(const Format& format, std::uint64_t pattern) {
    return static_cast<float>(decode(format, pattern));
  }
  static float run(const float* a, const float* b, std::int64_t n, float sum) {
    for (std::int64_t p = 0; p < n; ++p) sum = std::fma(a[p], b[p], sum);
    return sum;
  }
};

}  // namespace

const FusedKernel direct_products{
    .name = "direct_products",
    .steps = direct_product_steps,
    .takes = takes_direct_products,
    .scratch_bytes = [](const FusedProblem&,
                        int threads) { return direct_product_bytes<SequentialUnit>(threads); },
    .run_f32 = multiply_directly<float, SequentialUnit>,
    .run_c32 = multiply_directly<std::complex<float>, SequentialUnit>};

}  // namespace kintsugi::core
