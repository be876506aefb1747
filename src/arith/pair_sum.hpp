// Sums of products in double-double arithmetic, for native products of double-double operands.
#pragma once

#include <cmath>

#include "formats/double_double.hpp"

namespace kintsugi::core {

// Sum of products. add_product() adds x y and leaves a normalized pair. Its errors, with u = 2^-53:
//   x y: 4 u^2 |x y|. The product x_hi y_hi is exact in two words, the two cross products are rounded, and
//     x_lo y_lo is left out.
//   the three additions of low words: at most 3 u^2 |sum| + 10 u^2 |x y|.
//   the two-sums: none.
// A sum of k products therefore loses at most (3 k + 14) u^2 (|a||b|), second orders included, if nothing
// underflows or overflows: 3 u^2 for each of k - 1 additions and 14 u^2 for each product.
//
// `Arithmetic` computes on values that are doubles or SIMD registers of doubles. Each of its operations is
// rounded once.
template <class Arithmetic>
struct PairSum {
  using Value = typename Arithmetic::Value;
  Value hi;
  Value lo;

  [[gnu::always_inline]] void add_product(Value x_hi, Value x_lo, Value y_hi, Value y_lo) {
    using A = Arithmetic;
    const Value product = A::times(x_hi, y_hi);
    const Value crossed = A::fused(x_hi, y_lo, A::times(x_lo, y_hi));
    const Value low = A::plus(A::fused_difference(x_hi, y_hi, product), crossed);
    const Value sum = A::plus(hi, product);
    const Value added = A::minus(sum, hi);
    const Value error = A::plus(A::minus(hi, A::minus(sum, added)), A::minus(product, added));
    const Value correction = A::plus(error, A::plus(lo, low));
    hi = A::plus(sum, correction);
    const Value corrected_by = A::minus(hi, sum);
    lo = A::plus(A::minus(sum, A::minus(hi, corrected_by)), A::minus(correction, corrected_by));
  }
};

struct ScalarArithmetic {
  using Value = double;
  static double plus(double a, double b) { return a + b; }
  static double minus(double a, double b) { return a - b; }
  static double times(double a, double b) { return a * b; }
  static double fused(double a, double b, double c) { return std::fma(a, b, c); }
  static double fused_difference(double a, double b, double c) { return std::fma(a, b, -c); }
};

using ScalarPairSum = PairSum<ScalarArithmetic>;

// alpha * sum + beta * c in double-double arithmetic; c is null when beta = 0.
inline DoubleDouble pair_epilogue(const DoubleDouble& sum, const DoubleDouble& alpha,
                                  const DoubleDouble& beta, const DoubleDouble* c) {
  ScalarPairSum result{0, 0};
  result.add_product(alpha.hi, alpha.lo, sum.hi, sum.lo);
  if (c != nullptr) {
    const DoubleDouble old = normalized(*c);
    result.add_product(beta.hi, beta.lo, old.hi, old.lo);
  }
  return {result.hi, result.lo};
}

}  // namespace kintsugi::core
