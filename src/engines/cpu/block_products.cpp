// The definition of products with exponents per vector and k-block, with sequential additions in FP32. A
// kernel for CPUs would gain nothing: they multiply slices of fp16 no faster than FP32 numbers.
#include "engines/block_products.hpp"

#include "engines/cpu/products.hpp"

namespace kintsugi::core {

namespace {

struct SequentialUnit {
  using Element = float;
  static constexpr BlockUnit description{0, 0};

  static float load(const Format& format, std::uint64_t pattern) {
    return static_cast<float>(decode(format, pattern));
  }
  static float run(const float* a, const float* b, std::int64_t n, float sum) {
    for (std::int64_t p = 0; p < n; ++p) sum = std::fma(a[p], b[p], sum);
    return sum;
  }
};

}  // namespace

const FusedKernel block_products{
    .name = "block_products",
    .steps = block_product_steps,
    .takes = takes_block_products,
    .scratch_bytes = [](const FusedProblem&,
                        int threads) { return block_product_bytes<SequentialUnit>(threads); },
    .run_f32 = multiply_by_blocks<float, SequentialUnit>,
    .run_c32 = multiply_by_blocks<std::complex<float>, SequentialUnit>};

}  // namespace kintsugi::core
