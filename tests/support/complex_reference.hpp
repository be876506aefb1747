// References for complex products that share no code with the library: exact real and imaginary parts, and
// the embedding in a product of real matrices.
#pragma once

#include <complex>
#include <random>

#include "tests/support/gemm_case.hpp"
#include "tests/support/mpfr_value.hpp"

namespace kintsugi::test {

using measure::testing::Mpfr;

inline constexpr kintsugi_op ops[] = {KINTSUGI_OP_N, KINTSUGI_OP_T, KINTSUGI_OP_C};
inline constexpr kintsugi_layout layouts[] = {KINTSUGI_COLUMN_MAJOR, KINTSUGI_ROW_MAJOR};

inline std::int64_t draw(std::mt19937& random, std::int64_t max) {
  return 1 + static_cast<std::int64_t>(random()) % max;
}

// Elements of op(A) and op(B).
template <class T>
T a_element(GemmDataOf<T>& data, std::int64_t i, std::int64_t p, std::int64_t t = 0) {
  const T x = data.a(t)(i, p);
  return data.test().op_a == KINTSUGI_OP_C ? std::conj(x) : x;
}
template <class T>
T b_element(GemmDataOf<T>& data, std::int64_t p, std::int64_t j, std::int64_t t = 0) {
  const T x = data.b(t)(p, j);
  return data.test().op_b == KINTSUGI_OP_C ? std::conj(x) : x;
}

// The real m x 2n product of inner length 2k whose columns are the real and imaginary parts of the complex
// C's.
template <class T>
GemmDataOf<T> embedded(GemmDataOf<std::complex<T>>& data) {
  GemmCase test = data.test();
  test.n *= 2;
  test.k *= 2;
  test.op_a = test.op_b = KINTSUGI_OP_N;
  test.layout = KINTSUGI_COLUMN_MAJOR;
  test.pad_a = test.pad_b = test.pad_c = 0;
  GemmDataOf<T> real(test);
  for (std::int64_t p = 0; p < data.test().k; ++p) {
    for (std::int64_t i = 0; i < data.test().m; ++i) {
      real.a()(i, 2 * p) = a_element(data, i, p).real();
      real.a()(i, 2 * p + 1) = a_element(data, i, p).imag();
    }
    for (std::int64_t j = 0; j < data.test().n; ++j) {
      const std::complex<T> b = b_element(data, p, j);
      real.b()(2 * p, 2 * j) = b.real();
      real.b()(2 * p + 1, 2 * j) = -b.imag();
      real.b()(2 * p, 2 * j + 1) = b.imag();
      real.b()(2 * p + 1, 2 * j + 1) = b.real();
    }
  }
  return real;
}

// Both parts of alpha AB + beta C, exactly, and the sums of magnitudes that bounds refer to.
struct ExactParts {
  Mpfr re, im, re_magnitude, im_magnitude;
};

template <class T>
ExactParts exact_parts(GemmDataOf<std::complex<T>>& data, std::complex<T> old, std::int64_t i, std::int64_t j,
                       std::int64_t t = 0) {
  ExactParts sum;
  const auto add = [](Mpfr& total, Mpfr& magnitudes, double sign, double x, double y) {
    const Mpfr product = Mpfr(sign) * Mpfr(x) * Mpfr(y);
    total += product;
    magnitudes += magnitude(product);
  };
  const auto add_complex = [&](ExactParts& parts, std::complex<T> x, std::complex<T> y) {
    add(parts.re, parts.re_magnitude, 1, x.real(), y.real());
    add(parts.re, parts.re_magnitude, -1, x.imag(), y.imag());
    add(parts.im, parts.im_magnitude, 1, x.real(), y.imag());
    add(parts.im, parts.im_magnitude, 1, x.imag(), y.real());
  };
  for (std::int64_t p = 0; p < data.test().k; ++p)
    add_complex(sum, a_element(data, i, p, t), b_element(data, p, j, t));
  const Mpfr ar(data.alpha().real()), ai(data.alpha().imag());
  ExactParts result{ar * sum.re - ai * sum.im, ar * sum.im + ai * sum.re,
                    magnitude(ar) * sum.re_magnitude + magnitude(ai) * sum.im_magnitude,
                    magnitude(ar) * sum.im_magnitude + magnitude(ai) * sum.re_magnitude};
  if (data.beta() != std::complex<T>()) add_complex(result, data.beta(), old);
  EXPECT_TRUE(result.re.exact() && result.im.exact());
  return result;
}

template <class T>
T rounded_once(const Mpfr& x) {
  if constexpr (std::is_same_v<T, float>) {
    return x.to_float();
  } else {
    return x.to_double();
  }
}

}  // namespace kintsugi::test
