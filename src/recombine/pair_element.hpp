// Double-double elements of C for which double-double arithmetic fails: special values, underflow, overflow.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "arith/double_double.hpp"
#include "arith/host_device.hpp"
#include "base/view.hpp"
#include "recombine/special_values.hpp"

namespace kintsugi::core {

// Limits of products and sums from which underflow does no harm in double-double arithmetic. They hold for
// sums of k products, rounded to nearest with gradual underflow, fused or not, in any order.
//
// Proof. Every rounding has a relative error of at most u. Only a product may have an absolute error instead:
// at most eta, half the smallest subnormal. (A subnormal sum of two floating-point numbers is exact: Hauser,
// Handling floating-point exceptions in numeric programs, 1996.) Replace each x_p y_p by x_p y_p + eta_p:
// then nothing underflows, and the bound of schemes/bound.hpp holds. With S = (|A||B|)_ij:
//
//     |s' - s| <= k u S + (1 + k u) k eta
//
// The second term is at most u S in two cases, with P = 2 (1 + k u)^2 eta / u:
//
//   1. Every product is zero or at least P. A zero product loses nothing. n products of at least P have
//      S >= n P, and (1 + k u) n eta <= u n P.
//   2. |s'| >= k P. Since |s'| <= (1 + k u) (S + k eta),
//      S >= (2 (1 + k u) / u - 1) k eta >= (1 + k u) k eta / u.
//
// A product of double-double numbers (arith/pair_sum.hpp) has three roundings that may underflow. So its eta
// is 3 * 2^-1075; its u is 2^-106, and k u is bounded with 2^-104 instead.
struct UnderflowLimits {
  double product = 0;  // P
  double sum = 0;      // k P
};

KINTSUGI_HOST_DEVICE constexpr UnderflowLimits underflow_limits(std::int64_t k) {
  constexpr double eta_by_unit = 0x1.8p-968;
  constexpr double unit = 0x1p-104;
  const double growth = 1 + static_cast<double>(k) * unit;
  const double product = 2 * growth * growth * eta_by_unit;
  return {product, static_cast<double>(k) * product};
}

// View of an operand's elements, rounded to double. Special values and signs are kept.
struct LeadingParts {
  const MatrixView<const DoubleDouble>& pairs;  // vectors x k
  std::int64_t columns = pairs.columns;

  double operator()(std::int64_t v, std::int64_t p) const { return leading_part(pairs(v, p)); }
};

// Like special_element(), for double-double operands.
inline DoubleDouble special_pair_element(const MatrixView<const DoubleDouble>& a,
                                         const MatrixView<const DoubleDouble>& b, std::int64_t i,
                                         std::int64_t j, const DoubleDouble& alpha, const DoubleDouble& beta,
                                         const DoubleDouble* c) {
  const double product = alpha.hi * special_sum<double>(LeadingParts{a}, LeadingParts{b}, i, j);
  return c == nullptr ? product : product + beta.hi * leading_part(*c);
}

// True if the product of x and y may underflow in double-double arithmetic (UnderflowLimits).
inline bool may_underflow(double x, double y) {
  return x != 0 && y != 0 && !(std::abs(x * y) >= underflow_limits(1).product);
}

// True if underflow may have spoiled element (i, j) of alpha A B + beta C, either in its sum over k or in the
// products with alpha and beta. `sum`: the sum over k, computed in double-double arithmetic. `a` is m x k,
// `b` is n x k; `c` is null if beta = 0.
inline bool may_underflow(const MatrixView<const DoubleDouble>& a, const MatrixView<const DoubleDouble>& b,
                          std::int64_t i, std::int64_t j, const DoubleDouble& sum, const DoubleDouble& alpha,
                          const DoubleDouble& beta, const DoubleDouble* c) {
  if (may_underflow(alpha.hi, sum.hi) || (c != nullptr && may_underflow(beta.hi, leading_part(*c))))
    return true;
  const UnderflowLimits limits = underflow_limits(a.columns);
  if (std::abs(sum.hi) >= limits.sum) return false;
  double min_a = std::numeric_limits<double>::infinity();
  double min_b = min_a;
  for (std::int64_t p = 0; p < a.columns; ++p) {
    const double x = std::abs(leading_part(a(i, p)));
    const double y = std::abs(leading_part(b(j, p)));
    if (x != 0 && x < min_a) min_a = x;
    if (y != 0 && y < min_b) min_b = y;
  }
  return min_a * min_b < limits.product;
}

// Returns element (i, j) of alpha A B + beta C if double-double arithmetic fails for it. If row i of A or
// column j of B has special values, the element follows IEEE 754. Otherwise it is the exact result, rounded
// once. `a` is m x k, `b` is n x k; `c` is null if beta = 0.
inline DoubleDouble pair_element_beyond_range(const MatrixView<const DoubleDouble>& a,
                                              const MatrixView<const DoubleDouble>& b, std::int64_t i,
                                              std::int64_t j, const DoubleDouble& alpha,
                                              const DoubleDouble& beta, const DoubleDouble* c) {
  ExactSum sum;
  for (std::int64_t p = 0; p < a.columns; ++p) {
    const DoubleDouble x = normalized(a(i, p));
    const DoubleDouble y = normalized(b(j, p));
    if (!is_finite(x.hi) || !is_finite(y.hi)) return special_pair_element(a, b, i, j, alpha, beta, c);
    add_products(sum, &x, &y, 1);
  }
  return rounded_pair_result(sum, alpha, beta, c);
}

}  // namespace kintsugi::core
