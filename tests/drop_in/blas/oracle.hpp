// The naive product of a case in long double, and what a type's contract allows beside it.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

namespace kintsugi::test {

template <class T>
struct Parts {
  using Real = T;
  static constexpr bool is_complex = false;
};
template <class T>
struct Parts<std::complex<T>> {
  using Real = T;
  static constexpr bool is_complex = true;
};

using Wide = std::complex<long double>;

inline Wide wide(float x) { return {x, 0}; }
inline Wide wide(double x) { return {x, 0}; }
template <class T>
Wide wide(const std::complex<T>& x) {
  return {x.real(), x.imag()};
}

inline long double magnitude(const Wide& x) { return std::fabs(x.real()) + std::fabs(x.imag()); }

inline bool is_finite(const Wide& x) { return std::isfinite(x.real()) && std::isfinite(x.imag()); }

// Multiplies by parts, as IEEE sums of real products do; std::complex's operator would repair NaN to
// infinities.
inline Wide product(const Wide& x, const Wide& y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}

// An element of alpha op(A) op(B) + beta C.
struct Expected {
  Wide value;
  long double allowed = 0;  // for the real and the imaginary part each
};

// One element's sum, added up term by term.
template <class T>
class ElementOracle {
  using Real = typename Parts<T>::Real;

 public:
  void add(const T& a, const T& b) {
    const Wide x = wide(a);
    const Wide y = wide(b);
    const Wide term = Parts<T>::is_complex ? product(x, y) : Wide(x.real() * y.real(), 0);
    sum_ += term;
    sum_of_magnitudes_ += magnitude(x) * magnitude(y);
    ++terms_;
  }

  // Rounding errors are allowed as for a sum of so many terms, of which some are zero.
  void count_as(std::int64_t terms) { allowed_terms_ = terms; }

  // alpha = 0, as k = 0, leaves A and B unread; beta = 0 leaves C unread.
  Expected result(const T& alpha, const T& beta, const T& c) const {
    constexpr long double unit = std::numeric_limits<Real>::epsilon() / 2;
    const bool multiplies = terms_ > 0 && alpha != T(0);
    const bool adds = beta != T(0);
    const Wide scaled = multiplies ? times(wide(alpha), sum_) : Wide(0);
    const Wide added = adds ? times(wide(beta), wide(c)) : Wide(0);
    const long double products =
        static_cast<long double>(std::max(terms_, allowed_terms_)) * (Parts<T>::is_complex ? 2 : 1);
    const long double alpha_magnitude = multiplies ? magnitude(wide(alpha)) : 0;
    const long double sum_magnitude =
        multiplies ? alpha_magnitude * sum_of_magnitudes_ : 0;  // 0 times infinity is none
    const long double c_magnitude = adds ? magnitude(wide(beta)) * magnitude(wide(c)) : 0;
    const long double underflow =
        std::numeric_limits<Real>::denorm_min() * (products + 8) * (alpha_magnitude + 1);
    return {scaled + added,
            (products + 8) * unit * sum_magnitude + 4 * unit * (sum_magnitude + c_magnitude) + underflow};
  }

 private:
  static Wide times(const Wide& x, const Wide& y) {
    return Parts<T>::is_complex ? product(x, y) : Wide(x.real() * y.real(), 0);
  }

  Wide sum_ = 0;
  long double sum_of_magnitudes_ = 0;
  std::int64_t terms_ = 0, allowed_terms_ = 0;
};

// NaN where NaN is expected, an infinity where that one is.
template <class Real>
bool is_of_class(Real computed, long double expected) {
  if (std::isnan(expected)) return std::isnan(computed);
  return std::isinf(computed) && std::signbit(computed) == std::signbit(expected);
}

inline bool is_near(const Wide& value, const Expected& expected) {
  return is_finite(value) && std::fabs(value.real() - expected.value.real()) <= expected.allowed &&
         std::fabs(value.imag() - expected.value.imag()) <= expected.allowed;
}

// Real numbers: the class of the naive loop. Complex ones with NaN or infinities: not finite, since how alpha
// and beta multiply them is each BLAS's own affair.
template <class T>
bool meets(const T& computed, const Expected& expected) {
  const Wide value = wide(computed);
  if (is_finite(expected.value)) return is_near(value, expected);
  if constexpr (Parts<T>::is_complex) {
    return !is_finite(value);
  } else {
    return is_of_class(computed, expected.value.real());
  }
}

}  // namespace kintsugi::test
