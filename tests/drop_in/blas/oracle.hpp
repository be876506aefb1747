// The naive product of a case in long double, and what a type's contract allows beside it.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

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

// The loop over k takes most of a test's time: the sanitizers, which watch the product under test, are not to
// look at its every step.
#if defined(__clang__) || defined(__GNUC__)
#define KINTSUGI_TEST_UNSANITIZED __attribute__((no_sanitize("address", "undefined")))
#else
#define KINTSUGI_TEST_UNSANITIZED
#endif

// One element's sum. Sums of FP32 products, which are exact in FP64, have 29 bits more than FP32, those of
// FP64 products 11 bits more than FP64.
template <class T>
class ElementOracle {
  using Real = typename Parts<T>::Real;
  using Sum = std::conditional_t<std::is_same_v<Real, float>, double, long double>;

 public:
  // Adds products of elements, of which both vectors have as many.
  KINTSUGI_TEST_UNSANITIZED void add(std::span<const T> a, std::span<const T> b) {
    const T* const x = a.data();
    const T* const y = b.data();
    const std::size_t count = a.size();
    Sum real = 0;
    Sum imaginary = 0;
    double magnitudes = 0;
    for (std::size_t l = 0; l < count; ++l) {
      if constexpr (Parts<T>::is_complex) {
        const auto* const u = reinterpret_cast<const Real*>(x + l);
        const auto* const v = reinterpret_cast<const Real*>(y + l);
        real += static_cast<Sum>(u[0]) * v[0] - static_cast<Sum>(u[1]) * v[1];
        imaginary += static_cast<Sum>(u[0]) * v[1] + static_cast<Sum>(u[1]) * v[0];
        magnitudes +=
            (__builtin_fabs(u[0]) + __builtin_fabs(u[1])) * (__builtin_fabs(v[0]) + __builtin_fabs(v[1]));
      } else {
        real += static_cast<Sum>(x[l]) * y[l];
        magnitudes += __builtin_fabs(x[l]) * __builtin_fabs(y[l]);
      }
    }
    sum_ += Wide(real, imaginary);
    sum_of_magnitudes_ += magnitudes;
    terms_ += static_cast<std::int64_t>(count);
  }

  // Rounding errors are allowed as for a sum of so many terms, of which some are zero.
  void count_as(std::int64_t terms) { allowed_terms_ = terms; }

  // alpha = 0, as k = 0, leaves A and B unread; beta = 0 leaves C unread. `reads_for_zero`: alpha = 0
  // multiplies the sum too, so that its NaN and infinities make NaN.
  Expected result(const T& alpha, const T& beta, const T& c, bool reads_for_zero = false) const {
    constexpr long double unit = std::numeric_limits<Real>::epsilon() / 2;
    const bool multiplies = terms_ > 0 && (alpha != T(0) || reads_for_zero);
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

// Vectors of equal length, each contiguous.
template <class T>
class Vectors {
 public:
  template <class Element>
  Vectors(std::int64_t count, std::int64_t length, const Element& element)
      : length_(static_cast<std::size_t>(length)) {
    elements_.reserve(static_cast<std::size_t>(count) * length_);
    for (std::int64_t v = 0; v < count; ++v)
      for (std::int64_t l = 0; l < length; ++l) elements_.push_back(element(v, l));
  }
  std::span<const T> operator[](std::int64_t v) const {
    return std::span(elements_).subspan(static_cast<std::size_t>(v) * length_, length_);
  }

 private:
  std::size_t length_;
  std::vector<T> elements_;
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
