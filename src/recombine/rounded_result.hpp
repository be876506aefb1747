// Rounds a real element that was summed exactly. arith/complex.hpp rounds complex elements.
#pragma once

#include <cmath>

#include "arith/complex.hpp"
#include "arith/epilogue.hpp"
#include "arith/exact/exact_sum.hpp"

namespace kintsugi::core {

// Returns RN(alpha * sum + beta * c). `c` is null if beta = 0.
template <class T>
T rounded_result(ExactSum& sum, T alpha, T beta, const T* c) {
  if (!std::isfinite(alpha) || (c != nullptr && !std::isfinite(beta)))
    return special_epilogue(sum.sign(), alpha, beta, c);
  sum.multiply(static_cast<double>(alpha));
  if (c != nullptr) sum.add_product(beta, *c);
  return rounded<T>(sum);
}

}  // namespace kintsugi::core
