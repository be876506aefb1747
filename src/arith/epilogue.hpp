// The last step of every element: alpha * sum + beta * C.
#pragma once

#include <cmath>

#include "arith/host_device.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// `sum` is the recombined product once its scales are undone.
template <class T>
KINTSUGI_HOST_DEVICE inline T epilogue(double sum, T alpha, T beta, const T* c) {
  const double product = static_cast<double>(alpha) * sum;
  if (c == nullptr) return static_cast<T>(product);
  return static_cast<T>(product + static_cast<double>(beta) * static_cast<double>(*c));
}

// `sum` is the recombined product in scaled units, `exponent` undoes the scales. For T = float every
// step but the addition is exact in double (24 + 24 bits; |exponent| <= 326 keeps all powers normal), so
// what remains is one rounding to double and the final one to float. For T = double the product, the
// addition and, where the result is subnormal, the scaling round.
// c points at the old element, or is null when beta = 0: then it is not read.
template <class T>
KINTSUGI_HOST_DEVICE inline T epilogue(double sum, int exponent, T alpha, T beta, const T* c) {
  return epilogue(times_power_of_two(sum, exponent), alpha, beta, c);
}

// The same of an exact sum of which only the sign matters, where alpha, beta or the old element is NaN or
// infinite. What is finite is not rounded before: it can neither vanish beside an infinity nor become one.
template <class T>
KINTSUGI_HOST_DEVICE inline T special_epilogue(int sign, T alpha, T beta, const T* c) {
  const T product = std::isfinite(alpha) ? T(0) : alpha * static_cast<T>(sign);
  if (c == nullptr || (std::isfinite(beta) && std::isfinite(*c))) return product;
  return product + beta * *c;
}

}  // namespace kintsugi::core
