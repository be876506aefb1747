// The one rounding of an entry that was summed exactly.
#pragma once

#include <cmath>

#include "arith/exact_sum.hpp"

namespace kintsugi::core {

// RN(alpha sum + beta c); c is null when beta = 0. Where alpha or beta is no number, it is that of IEEE arithmetic.
template <class T>
T rounded_result(ExactSum& sum, T alpha, T beta, const T* c) {
  if (!std::isfinite(alpha) || (c != nullptr && !std::isfinite(beta))) {
    const auto product = static_cast<T>(alpha * static_cast<T>(sum.to_double()));
    return c == nullptr ? product : product + beta * *c;
  }
  sum.multiply(static_cast<double>(alpha));
  if (c != nullptr) sum.add_product(beta, *c);
  if constexpr (sizeof(T) == sizeof(float)) return sum.to_float();
  return static_cast<T>(sum.to_double());
}

}  // namespace kintsugi::core
