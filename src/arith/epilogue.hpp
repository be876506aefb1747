// Epilogue of every element: alpha * sum + beta * C.
#pragma once

#include <cmath>

#include "arith/host_device.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// alpha * sum + beta * c; `sum` is the recombined product after its scales are undone. c is null when beta =
// 0.
template <class T>
KINTSUGI_HOST_DEVICE inline T epilogue(double sum, T alpha, T beta, const T* c) {
  const double product = static_cast<double>(alpha) * sum;
  if (c == nullptr) return static_cast<T>(product);
  return static_cast<T>(product + static_cast<double>(beta) * static_cast<double>(*c));
}

// alpha * sum * 2^exponent + beta * c. `sum` is the recombined product in scaled units, and 2^exponent undoes
// the scales. c is null when beta = 0. T = float: two roundings, of the addition to double and of the result
// to float. All other steps are exact in double, since alpha * sum has 24 + 24 bits and |exponent| <= 326
// keeps all powers of two normal. T = double: the product and the addition are rounded; the scaling is
// rounded if its result is subnormal.
template <class T>
KINTSUGI_HOST_DEVICE inline T epilogue(double sum, int exponent, T alpha, T beta, const T* c) {
  return epilogue(times_power_of_two(sum, exponent), alpha, beta, c);
}

// alpha * sum + beta * c if alpha, beta or c is infinite or NaN. `sign` is that of the exact sum; the sum's
// magnitude does not matter. A finite product is left out: it cannot change an infinity or NaN, but computing
// it might overflow.
template <class T>
KINTSUGI_HOST_DEVICE inline T special_epilogue(int sign, T alpha, T beta, const T* c) {
  const T product = std::isfinite(alpha) ? T(0) : alpha * static_cast<T>(sign);
  if (c == nullptr || (std::isfinite(beta) && std::isfinite(*c))) return product;
  return product + beta * *c;
}

}  // namespace kintsugi::core
