// The last steps of complex entries: what epilogue.hpp and exact_rounding.hpp do for real ones, part by part.
#pragma once

#include <complex>
#include <type_traits>

#include "arith/exact_rounding.hpp"
#include "arith/exact_sum.hpp"

namespace kintsugi::core {

// factor * z as products and sums of parts. A factor without an imaginary part scales both parts, as a real one does:
// what overflows in one then does not reach the other.
template <class T>
std::complex<T> times(const std::complex<T>& factor, const std::complex<T>& z) {
  if (factor.imag() == T(0)) return {factor.real() * z.real(), factor.real() * z.imag()};
  return {factor.real() * z.real() - factor.imag() * z.imag(),
          factor.real() * z.imag() + factor.imag() * z.real()};
}
inline float times(float factor, float x) { return factor * x; }
inline double times(double factor, double x) { return factor * x; }

// alpha * product + beta * c in double, every step rounded, then each part to T. c is null when beta = 0.
template <class T>
std::complex<T> epilogue(const std::complex<double>& product, const std::complex<T>& alpha,
                         const std::complex<T>& beta, const std::complex<T>* c) {
  using Wide = std::complex<double>;
  Wide result = times(Wide(alpha), product);
  if (c != nullptr) result += times(Wide(beta), Wide(*c));
  return {static_cast<T>(result.real()), static_cast<T>(result.imag())};
}

template <class T>
T rounded(const ExactSum& sum) {
  if constexpr (std::is_same_v<T, float>)
    return sum.to_float();
  else
    return sum.to_double();
}

namespace exact_detail {

// One part of alpha (x + i y) + beta c: `same` is its own part of the product, `other` times sign the one that comes
// in by the imaginary parts of alpha and beta.
template <class T>
T rounded_part(const ExactSum& same, const ExactSum& other, int sign, const std::complex<T>& alpha,
               const std::complex<T>& beta, T c_same, T c_other) {
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
  return rounded<T>(sum);
}

template <int Limbs>
ExactSum exact_sum(const ExactNumber<Limbs>& x) {
  ExactSum sum;
  for (int l = 0; l < Limbs; ++l) sum.add_integer(x.magnitude.limb[l], x.exponent + 64 * l, x.negative);
  return sum;
}

}  // namespace exact_detail

// alpha (x + i y) + beta c, each part rounded once; c is null when beta = 0.
template <class T>
std::complex<T> exact_epilogue(const ExactSum& x, const ExactSum& y, const std::complex<T>& alpha,
                               const std::complex<T>& beta, const std::complex<T>* c) {
  const std::complex<T> old = c == nullptr ? std::complex<T>() : *c;
  return {exact_detail::rounded_part(x, y, -1, alpha, beta, old.real(), old.imag()),
          exact_detail::rounded_part(y, x, 1, alpha, beta, old.imag(), old.real())};
}

// The same of integers. Without imaginary parts in alpha and beta the parts are real results of their own.
template <class T, int Limbs>
std::complex<T> exact_epilogue(const ExactNumber<Limbs>& x, const ExactNumber<Limbs>& y,
                               const std::complex<T>& alpha, const std::complex<T>& beta,
                               const std::complex<T>* c) {
  if (alpha.imag() != T(0) || beta.imag() != T(0))
    return exact_epilogue(exact_detail::exact_sum(x), exact_detail::exact_sum(y), alpha, beta, c);
  const T re = c == nullptr ? T(0) : c->real();
  const T im = c == nullptr ? T(0) : c->imag();
  return {exact_epilogue(x, alpha.real(), beta.real(), c == nullptr ? nullptr : &re),
          exact_epilogue(y, alpha.real(), beta.real(), c == nullptr ? nullptr : &im)};
}

// beta * c: rounded once a part.
template <class T>
std::complex<T> scaled_entry(const std::complex<T>& beta, const std::complex<T>& c) {
  if (beta.imag() == T(0)) return times(beta, c);
  return exact_epilogue(ExactSum(), ExactSum(), std::complex<T>(), beta, &c);
}
inline float scaled_entry(float beta, float c) { return beta * c; }
inline double scaled_entry(double beta, double c) { return beta * c; }

}  // namespace kintsugi::core
