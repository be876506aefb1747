// Limits above which products and sums in native arithmetic are not harmed by underflow.
#pragma once

#include <cstdint>

#include "arith/host_device.hpp"
#include "formats/double_double.hpp"

namespace kintsugi::core {

// Sums of k products in a type's own arithmetic: rounded to nearest with gradual underflow, fused or not, in
// any order.
//
// Every rounding has a relative error of at most u. Only a product, fused or not, may have an absolute error
// instead, of at most eta, half the smallest subnormal: a subnormal sum of two floating-point numbers is
// exact (Hauser, Handling floating-point exceptions in numeric programs, 1996). With x_p y_p + eta_p in place
// of x_p y_p nothing underflows, so that the bound of schemes/bound.hpp holds for k products with S =
// (|A||B|)_ij:
//
//     |s' - s| <= k u S + (1 + k u) k eta
//
// Underflow adds at most one more unit, u S, in either of two cases, with P = 2 (1 + k u)^2 eta / u:
//
//   1. Every product is zero, which loses nothing, or at least P: n products of at least P have S >= n P, and
//      (1 + k u) n eta <= u n P.
//   2. |s'| >= k P: as |s'| <= (1 + k u) (S + k eta),
//      S >= (2 (1 + k u) / u - 1) k eta >= (1 + k u) k eta / u.
//
// A product of double-double numbers (arith/pair_sum.hpp) has three roundings that may underflow, so that eta
// is 3 * 2^-1075, and u is 2^-106; k u is bounded with 2^-104 instead.
struct UnderflowLimits {
  double product = 0;  // P
  double sum = 0;      // k P
};

template <class T>
KINTSUGI_HOST_DEVICE constexpr UnderflowLimits underflow_limits(std::int64_t k) {
  constexpr bool is_single = std::is_same_v<T, float>;
  constexpr double eta_by_unit = is_single ? 0x1p-126 : is_double_double<T> ? 0x1.8p-968 : 0x1p-1022;
  constexpr double unit = is_single ? 0x1p-24 : is_double_double<T> ? 0x1p-104 : 0x1p-53;
  const double growth = 1 + static_cast<double>(k) * unit;
  const double product = 2 * growth * growth * eta_by_unit;
  return {product, static_cast<double>(k) * product};
}

}  // namespace kintsugi::core
