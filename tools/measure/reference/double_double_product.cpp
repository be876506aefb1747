#include "tools/measure/reference/double_double_product.hpp"

#include <algorithm>

#include "formats/error_free.hpp"

namespace kintsugi::measure {
namespace {

// Adds x times a row of B to the sums: the product and its error, two-sum, the low parts, and renormalization
// of the pair.
[[gnu::always_inline]] inline void add_multiple(double x, const double* __restrict b, std::int64_t n,
                                                double* __restrict high, double* __restrict low) {
  for (std::int64_t j = 0; j < n; ++j) {
    const auto product = core::two_product(x, b[j]);
    const auto sum = core::two_sum(high[j], product.value);
    const double correction = sum.error + (low[j] + product.error);
    high[j] = sum.value + correction;
    low[j] = correction - (high[j] - sum.value);
  }
}

[[gnu::always_inline]] inline void row(const double* a, const double* b, std::int64_t n, std::int64_t k,
                                       double* high, double* low) {
  std::fill_n(high, n, 0.0);
  std::fill_n(low, n, 0.0);
  for (std::int64_t l = 0; l < k; ++l) add_multiple(a[l], b + l * n, n, high, low);
}

#if defined(__x86_64__)
[[gnu::target("avx512f,prefer-vector-width=512")]] void row_avx512(const double* a, const double* b,
                                                                   std::int64_t n, std::int64_t k,
                                                                   double* high, double* low) {
  row(a, b, n, k, high, low);
}

[[gnu::target("avx2,fma")]] void row_avx2(const double* a, const double* b, std::int64_t n, std::int64_t k,
                                          double* high, double* low) {
  row(a, b, n, k, high, low);
}
#endif

}  // namespace

void double_double_row(const double* a, const double* b, std::int64_t n, std::int64_t k, double* high,
                       double* low) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return row_avx512(a, b, n, k, high, low);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return row_avx2(a, b, n, k, high, low);
#endif
  row(a, b, n, k, high, low);
}

}  // namespace kintsugi::measure
