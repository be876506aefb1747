// Epilogue and exact rounding of complex elements, part by part, as epilogue.hpp and exact_rounding.hpp do
// for real ones. Elements are std::complex on the host, Complex of base/embedding.hpp in kernels.
#pragma once

#include <cmath>
#include <complex>
#include <concepts>
#include <type_traits>

#include "arith/exact/exact_rounding.hpp"
#include "arith/exact/exact_sum.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core {

// factor * z. A factor with a zero imaginary part multiplies each part of z alone: with the general formula a
// product 0 * infinity of one part would make the other part NaN.
template <ComplexElement Z>
KINTSUGI_HOST_DEVICE Z times(const Z& factor, const Z& z) {
  if (factor.imag() == 0) return {factor.real() * z.real(), factor.real() * z.imag()};
  return {factor.real() * z.real() - factor.imag() * z.imag(),
          factor.real() * z.imag() + factor.imag() * z.real()};
}
KINTSUGI_HOST_DEVICE inline float times(float factor, float x) { return factor * x; }
KINTSUGI_HOST_DEVICE inline double times(double factor, double x) { return factor * x; }

// alpha * product + beta * c in double, every step rounded, then each part to T. c is null when beta = 0.
template <ComplexElement Z>
KINTSUGI_HOST_DEVICE Z epilogue(const Complex<double>& product, const Z& alpha, const Z& beta, const Z* c) {
  using T = RealOf<Z>;
  const auto wide = [](const Z& z) { return Complex<double>(z.real(), z.imag()); };
  Complex<double> result = times(wide(alpha), product);
  if (c != nullptr) result = result + times(wide(beta), wide(*c));
  return {static_cast<T>(result.real()), static_cast<T>(result.imag())};
}

template <class T>
T rounded(const ExactSum& sum, RoundingMode rounding = RoundingMode::nearest) {
  if constexpr (std::is_same_v<T, float>)
    return sum.to_float(rounding);
  else
    return sum.to_double(rounding);
}

namespace exact_detail {

// One part of alpha (x + i y) + beta c, rounded once:
//   alpha.real() same + sign alpha.imag() other + beta.real() c_same + sign beta.imag() c_other.
// For the real part `same` is x, `other` is y and `sign` is -1. For the imaginary part `same` is y, `other`
// is x and `sign` is 1.
template <class T>
T rounded_part(const ExactSum& same, const ExactSum& other, int sign, const std::complex<T>& alpha,
               const std::complex<T>& beta, T c_same, T c_other, RoundingMode rounding) {
  ExactSum sum = same;
  if (alpha.real() != T(1)) sum.multiply(static_cast<double>(alpha.real()));
  if (alpha.imag() != T(0)) {
    ExactSum crossed = other;
    crossed.multiply(sign * static_cast<double>(alpha.imag()));
    sum.add(crossed);
  }
  sum.add_product(static_cast<double>(beta.real()), static_cast<double>(c_same));
  if (beta.imag() != T(0))
    sum.add_product(sign * static_cast<double>(beta.imag()), static_cast<double>(c_other));
  return rounded<T>(sum, rounding);
}

// factor * x in `Limbs` limbs; zero if the factor is infinite or NaN.
template <int Limbs, int OtherLimbs>
KINTSUGI_HOST_DEVICE ExactNumber<Limbs> finite_product(const ExactNumber<OtherLimbs>& x, double factor) {
  if (!std::isfinite(factor)) return {};
  const auto product = times(x, exact(factor));
  return {WideInteger<Limbs>::shifted(product.magnitude, 0), product.exponent, product.negative};
}
// factor * x; zero if either of the two is infinite or NaN.
template <int Limbs>
KINTSUGI_HOST_DEVICE ExactNumber<Limbs> finite_product(double x, double factor) {
  return std::isfinite(x) ? finite_product<Limbs>(exact(x), factor) : ExactNumber<Limbs>{};
}

// factor * x by IEEE 754 if the factor is infinite or NaN; else 0. x is finite, so only its sign is read.
template <int Limbs>
KINTSUGI_HOST_DEVICE double special_product(const ExactNumber<Limbs>& x, double factor) {
  if (std::isfinite(factor)) return 0;
  return factor * (x.magnitude.length() == 0 ? 0 : x.negative ? -1 : 1);
}
// factor * x by IEEE 754 if either of the two is infinite or NaN; else 0.
KINTSUGI_HOST_DEVICE inline double special_product(double x, double factor) {
  return std::isfinite(x) && std::isfinite(factor) ? 0 : x * factor;
}

// rounded_part() of exact numbers. alpha and beta may be infinite or NaN. The caller has multiplied the
// imaginary parts of alpha and beta by `sign`.
template <class T, int Limbs>
KINTSUGI_HOST_DEVICE T rounded_part(const ExactNumber<Limbs>& same, const ExactNumber<Limbs>& other,
                                    const Complex<double>& alpha, const Complex<double>& beta, double c_same,
                                    double c_other, RoundingMode rounding) {
  double special = special_product(same, alpha.real()) + special_product(c_same, beta.real());
  if (alpha.imag() != 0) special += special_product(other, alpha.imag());
  if (beta.imag() != 0) special += special_product(c_other, beta.imag());
  if (special != 0) return static_cast<T>(special);  // infinite or NaN
  constexpr int width = Limbs + 1;
  return rounded_sum<T>(
      std::array{finite_product<width>(same, alpha.real()), finite_product<width>(other, alpha.imag()),
                 finite_product<width>(c_same, beta.real()), finite_product<width>(c_other, beta.imag())},
      rounding);
}

// Part number `part` (0: real, 1: imaginary) of alpha (x + i y) + beta c, rounded once. c is null when beta =
// 0.
template <ComplexElement Z, int Limbs>
KINTSUGI_HOST_DEVICE RealOf<Z> rounded_part(const ExactNumber<Limbs>& same, const ExactNumber<Limbs>& other,
                                            int part, const Z& alpha, const Z& beta, const Z* c,
                                            RoundingMode rounding) {
  using T = RealOf<Z>;
  const Z old = c == nullptr ? Z() : *c;
  const T c_same = part == 0 ? old.real() : old.imag();
  const T c_other = part == 0 ? old.imag() : old.real();
  if (alpha.imag() == T(0) && beta.imag() == T(0))
    return exact_epilogue(same, alpha.real(), beta.real(), c == nullptr ? nullptr : &c_same, rounding);
  const T sign = part == 0 ? T(-1) : T(1);  // i * i = -1
  return rounded_part<T>(same, other, Complex<double>(alpha.real(), sign * alpha.imag()),
                         Complex<double>(beta.real(), sign * beta.imag()), c_same, c_other, rounding);
}

}  // namespace exact_detail

// alpha (x + i y) + beta c, each part rounded once; c is null when beta = 0.
template <class T>
std::complex<T> exact_epilogue(const ExactSum& x, const ExactSum& y, const std::complex<T>& alpha,
                               const std::complex<T>& beta, const std::complex<T>* c,
                               RoundingMode rounding = RoundingMode::nearest) {
  const std::complex<T> old = c == nullptr ? std::complex<T>() : *c;
  return {exact_detail::rounded_part(x, y, -1, alpha, beta, old.real(), old.imag(), rounding),
          exact_detail::rounded_part(y, x, 1, alpha, beta, old.imag(), old.real(), rounding)};
}

// exact_epilogue() of exact numbers. The loop is not unrolled, because the code of one part is long for many
// limbs.
template <ComplexElement Z, int Limbs>
KINTSUGI_HOST_DEVICE Z exact_epilogue(const ExactNumber<Limbs>& x, const ExactNumber<Limbs>& y,
                                      const Z& alpha, const Z& beta, const Z* c,
                                      RoundingMode rounding = RoundingMode::nearest) {
  RealOf<Z> result[2];
  KINTSUGI_ROLLED
  for (int p = 0; p < 2; ++p)
    result[p] = exact_detail::rounded_part(p == 0 ? x : y, p == 0 ? y : x, p, alpha, beta, c, rounding);
  return {result[0], result[1]};
}

// beta * c, each part rounded once.
template <std::floating_point T>
KINTSUGI_HOST_DEVICE T scaled_element(T beta, T c, RoundingMode rounding) {
  const T product = beta * c;
  if (rounding == RoundingMode::nearest || beta == 0 || c == 0 || !std::isfinite(beta) || !std::isfinite(c))
    return product;
  using namespace exact_detail;
  constexpr bool sticky = false;
  return rounded<T>(times(exact(static_cast<double>(beta)), exact(static_cast<double>(c))), sticky, rounding);
}
template <ComplexElement Z>
KINTSUGI_HOST_DEVICE Z scaled_element(const Z& beta, const Z& c, RoundingMode rounding) {
  if (beta.imag() != 0) return exact_epilogue(ExactNumber<1>{}, ExactNumber<1>{}, Z(), beta, &c, rounding);
  return {scaled_element(beta.real(), c.real(), rounding), scaled_element(beta.real(), c.imag(), rounding)};
}

namespace exact_detail {

// True if all terms of part `part` of an element are +0: the products alpha a b of row i of `a` and vector v
// of `b`, and beta c. `c` is null if beta = 0.
template <class T, class View>
KINTSUGI_HOST_DEVICE bool has_positive_zeros_alone(const View& a, const View& b, std::int64_t i,
                                                   std::int64_t v, const T& alpha, const T& beta, const T* c,
                                                   std::int64_t part) {
  RealOf<T> real_alpha, real_beta, old = 0;
  if constexpr (is_complex<T>) {
    if (alpha.imag() != 0 || (c != nullptr && beta.imag() != 0)) return false;
    real_alpha = alpha.real();
    real_beta = beta.real();
    if (c != nullptr) old = part == 0 ? c->real() : c->imag();
  } else {
    real_alpha = alpha;
    real_beta = beta;
    if (c != nullptr) old = *c;
  }
  if (c != nullptr && (old != 0 || std::signbit(old) != std::signbit(real_beta))) return false;
  for (std::int64_t p = 0; p < a.columns; ++p) {
    const auto x = a(i, p);
    const auto y = b(v, p);
    if ((x != 0 && y != 0) || (std::signbit(x) != std::signbit(y)) != std::signbit(real_alpha)) return false;
  }
  return true;
}

}  // namespace exact_detail

// Returns a part of an element, which was summed exactly, with the sign that IEEE 754 gives to zero. Sums
// from +0 on that are zero are +0; rounded down, they are -0 unless all terms are +0.
template <class T, class View>
KINTSUGI_HOST_DEVICE RealOf<T> with_sign_of_zero(RealOf<T> result, RoundingMode rounding, const View& a,
                                                 const View& b, std::int64_t i, std::int64_t v,
                                                 const T& alpha, const T& beta, const T* c,
                                                 std::int64_t part) {
  if (rounding != RoundingMode::down || result != 0 || !std::signbit(result)) return result;
  const bool is_positive = exact_detail::has_positive_zeros_alone(a, b, i, v, alpha, beta, c, part);
  return is_positive ? RealOf<T>(0) : result;
}

}  // namespace kintsugi::core
