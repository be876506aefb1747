// Epilogue of every element: alpha * sum + beta * C.
#pragma once

#include <cmath>

#include "arith/host_device.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// alpha * sum + beta * c; `sum` is the recombined product after its scales are undone.
template <class T>
KINTSUGI_HOST_DEVICE inline T epilogue(double sum, T alpha, T beta, const T* c) {
  const double product = static_cast<double>(alpha) * sum;
  if (c == nullptr) return static_cast<T>(product);
  return static_cast<T>(product + static_cast<double>(beta) * static_cast<double>(*c));
}

// alpha * sum * 2^exponent + beta * c; `sum` is the recombined product in scaled units, 2^exponent undoes the
// scales. For T = float every step but the addition is exact in double (24 + 24 bits; |exponent| <= 326 keeps
// all powers normal), so that only the addition, to double, and the last step, to float, round. For T =
// double the product and the addition round, and the scaling if it gives a subnormal. c points at the old
// element; it is null, and not read, when beta = 0.
template <class T>
KINTSUGI_HOST_DEVICE inline T epilogue(double sum, int exponent, T alpha, T beta, const T* c) {
  return epilogue(times_power_of_two(sum, exponent), alpha, beta, c);
}

// alpha * sum + beta * c where alpha, beta or the old element is NaN or infinite; of the exact sum only the
// sign matters. A finite product is left out: it changes nothing beside an infinity or NaN, and computed here
// it might overflow to an infinity of its own.
template <class T>
KINTSUGI_HOST_DEVICE inline T special_epilogue(int sign, T alpha, T beta, const T* c) {
  const T product = std::isfinite(alpha) ? T(0) : alpha * static_cast<T>(sign);
  if (c == nullptr || (std::isfinite(beta) && std::isfinite(*c))) return product;
  return product + beta * *c;
}

}  // namespace kintsugi::core
