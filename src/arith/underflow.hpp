// Magnitudes of products and sums from which underflow does no harm in double-double arithmetic.
#pragma once

#include <cstdint>

#include "arith/host_device.hpp"

namespace kintsugi::core {

// Limits of products and sums from which underflow does no harm. They hold for sums of k products, rounded to
// nearest with gradual underflow, fused or not, in any order.
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

}  // namespace kintsugi::core
