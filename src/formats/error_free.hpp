// Error-free transformations (Knuth; Dekker): the rounded result and the exact error beside it.
// Must be compiled without contraction and without fast-math, in round-to-nearest.
#pragma once

#include <cmath>

namespace kintsugi::core {

template <class T>
struct ValueAndError {
  T value;
  T error;
};

// value = fl(a + b); value + error = a + b exactly, barring overflow.
template <class T>
constexpr ValueAndError<T> two_sum(T a, T b) {
  const T sum = a + b;
  const T b_part = sum - a;
  const T a_part = sum - b_part;
  return {sum, (a - a_part) + (b - b_part)};
}

// value = fl(a * b); value + error = a * b exactly if nothing overflows and the product's last bit is not
// below the smallest subnormal.
template <class T>
ValueAndError<T> two_product(T a, T b) {
  const T product = a * b;
  return {product, std::fma(a, b, -product)};
}

}  // namespace kintsugi::core
