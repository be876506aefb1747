// One element of C whose row of A or column of B has NaN or infinities.
#pragma once

#include <cstdint>

#include "arith/complex.hpp"
#include "arith/host_device.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core {

// Returns the sum of the products of vectors i of A and v of B that have a non-finite factor.
template <class T, class View>
KINTSUGI_HOST_DEVICE T special_sum(const View& a, const View& b, std::int64_t i, std::int64_t v) {
  const auto finite = [](T x) { return x - x == T(0); };
  T sum = 0;
  for (std::int64_t p = 0; p < a.columns; ++p) {
    const T x = a(i, p);
    const T y = b(v, p);
    if (!finite(x) || !finite(y)) sum += x * y;
  }
  return sum;
}

// Returns alpha * special_sum() + beta * C(i, j); c is null if beta = 0.
template <class T>
KINTSUGI_HOST_DEVICE T special_element(const OperandView<T>& a, const OperandView<T>& b, std::int64_t i,
                                       std::int64_t j, T alpha, T beta, const T* c) {
  T sum;
  if constexpr (is_complex<T>) {
    sum = {special_sum<RealOf<T>>(a, b, i, 2 * j), special_sum<RealOf<T>>(a, b, i, 2 * j + 1)};
  } else {
    sum = special_sum<T>(a, b, i, j);
  }
  const T product = times(alpha, sum);
  return c == nullptr ? product : product + times(beta, *c);
}

}  // namespace kintsugi::core
