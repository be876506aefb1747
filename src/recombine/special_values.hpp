// Elements of C whose row of A or column of B has NaN or infinities. Slices cannot represent these values.
#pragma once

#include <cstdint>
#include <span>

#include "arith/complex.hpp"
#include "arith/host_device.hpp"
#include "arith/range.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core {

// Writes the elements that recombinations do not write. An element is alpha * s + beta * C by the rules of
// IEEE 754, where s is the sum of all products with a non-finite factor. (Finite products cannot change a
// non-finite sum.) `a` is m x k, `b` is n x k (op(B) transposed). C is not read if beta = 0. A complex
// element has a sum s for each part (base/embedding.hpp), and alpha and beta multiply the parts
// (arith/complex.hpp).
template <class T>
void write_special_values(const OperandView<T>& a, const OperandView<T>& b, std::span<const VectorRange> rows,
                          std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                          int threads);

// Numbers of elements of C that a product may have made infinite or NaN.
struct SpecialResults {
  std::int64_t infinities = 0;  // infinite parts whose row and column are finite
  std::int64_t nans = 0;        // NaN whose row and column have none
};
template <class T>
SpecialResults count_special_results(const MatrixView<T>& c, std::span<const VectorRange> rows,
                                     std::span<const VectorRange> columns, int threads);

// ---------------------------------------------------------------- one element

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
