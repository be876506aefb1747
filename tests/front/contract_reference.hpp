// Exact elements of products whose numbers have any exponents, and checks of results against contracts.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/support/complex_reference.hpp"
#include "tests/support/pair_reference.hpp"
#include "tools/measure/metrics.hpp"

namespace kintsugi::test {

template <class T>
double unit_of() {
  return std::is_same_v<core::RealOf<T>, float> ? 0x1p-24
         : std::is_same_v<T, DoubleDouble>      ? 0x1p-104
                                                : 0x1p-53;
}
template <class T>
double smallest_of() {
  return std::is_same_v<core::RealOf<T>, float> ? 0x1p-149 : 0x1p-1074;
}
template <class T>
double largest_of() {
  return std::is_same_v<core::RealOf<T>, float> ? std::numeric_limits<float>::max()
                                                : std::numeric_limits<double>::max();
}

// A part of an exact element, with the magnitudes that bounds are relative to: |alpha| |A||B| and |beta C|.
// Also |A||B|; of complex elements |Re| + |Im| of each.
struct Part {
  Mpfr value, products, old, sum;
};

// |x|, or |Re x| + |Im x|.
template <class T>
double magnitude_of(const T& x) {
  if constexpr (core::is_complex<T>) {
    return std::abs(double{x.real()}) + std::abs(double{x.imag()});
  } else {
    return std::abs(static_cast<double>(x));
  }
}

template <class T>
std::vector<Part> exact_complex_element(GemmDataOf<T>& data, const T& old, std::int64_t i, std::int64_t j,
                                        std::int64_t t) {
  const ExactParts exact = exact_parts(data, old, i, j, t);
  std::vector<Part> parts{{exact.re, exact.re_magnitude, Mpfr(), Mpfr()},
                          {exact.im, exact.im_magnitude, Mpfr(), Mpfr()}};
  for (std::int64_t p = 0; p < data.test().k; ++p) {
    for (Part& part : parts)
      part.sum += Mpfr(magnitude_of(data.a(t)(i, p))) * Mpfr(magnitude_of(data.b(t)(p, j)));
  }
  if (data.beta() == T()) return parts;
  const Mpfr br(data.beta().real()), bi(data.beta().imag()), cr(old.real()), ci(old.imag());
  parts[0].old = magnitude(br * cr) + magnitude(bi * ci);
  parts[1].old = magnitude(br * ci) + magnitude(bi * cr);
  for (Part& part : parts) part.products -= part.old;
  return parts;
}

template <class T>
std::vector<Part> exact_element(GemmDataOf<T>& data, const T& old, std::int64_t i, std::int64_t j,
                                std::int64_t t) {
  if constexpr (core::is_complex<T>) {
    return exact_complex_element(data, old, i, j, t);
  } else {
    const auto value = [](const T& x) {
      if constexpr (std::is_same_v<T, DoubleDouble>) {
        return exact_value(x);
      } else {
        return Mpfr(x);
      }
    };
    Part part;
    for (std::int64_t p = 0; p < data.test().k; ++p) {
      const Mpfr product = value(data.a(t)(i, p)) * value(data.b(t)(p, j));
      part.sum += magnitude(product);
      part.value += value(data.alpha()) * product;
      part.products += magnitude(value(data.alpha()) * product);
    }
    if (!(data.beta() == T(0))) {
      part.old = magnitude(value(data.beta()) * value(old));
      part.value += value(data.beta()) * value(old);
    }
    EXPECT_TRUE(part.value.exact());
    return {part};
  }
}

// Contract of an element: (products + 8) units of |alpha| |A||B| + |beta C|, where `products` is the number
// of real products, plus `underflow`.
struct Promise {
  std::int64_t products;
  double underflow;
  bool may_overflow_on_the_way;
};

// Expects x within the contract. A result that is not finite passes if alpha AB or beta C alone nearly
// overflows. Returns false if nothing is promised because sums may overflow on the way.
template <class T>
bool expect_kept(const Mpfr& x, double rounded, const Part& exact, const Promise& promise,
                 const std::string& where) {
  const double max = largest_of<T>();
  const auto nearly_overflows = [&](const Mpfr& value) { return value.to_double() > max / 4; };
  const bool cancels = nearly_overflows(exact.products) && exact.old.sign() != 0;
  const bool overflows = nearly_overflows(exact.sum) || cancels || nearly_overflows(exact.old);
  if (promise.may_overflow_on_the_way && overflows) return false;
  const Mpfr allowed =
      Mpfr(static_cast<double>(promise.products + 8) * unit_of<T>()) * (exact.products + exact.old) +
      Mpfr(promise.underflow);
  if (!std::isfinite(rounded)) {
    const Mpfr beyond = magnitude(exact.value) + allowed - Mpfr(max);
    EXPECT_TRUE(cancels || nearly_overflows(exact.old) || beyond.sign() > 0)
        << where << ": " << rounded << " for " << exact.value.to_double();
    return true;
  }
  EXPECT_LE((magnitude(exact.value - x) - allowed).sign(), 0)
      << where << ": " << rounded << " for " << exact.value.to_double();
  return true;
}

// Expects the contract of all elements. `natively`: vendors' native arithmetic may have computed them.
// Returns the number of elements for which something is promised.
template <class T>
std::int64_t expect_kept(GemmDataOf<T>& data, const std::vector<T>& before, bool natively,
                         const std::string& where) {
  const GemmCase& test = data.test();
  Promise promise{test.k * core::parts_of<T>, smallest_of<T>(), false};
  if constexpr (!std::is_same_v<T, DoubleDouble>) {
    if (natively) {
      const double alpha = magnitude_of(data.alpha());
      promise.underflow = measure::contract_underflow<core::RealOf<T>>(alpha, promise.products);
      promise.may_overflow_on_the_way = true;
    }
  }
  std::int64_t promised = 0;
  for (std::int64_t t = 0, e = 0; t < test.batch; ++t) {
    for (std::int64_t j = 0; j < test.n; ++j) {
      for (std::int64_t i = 0; i < test.m; ++i, ++e) {
        const auto exact = exact_element(data, before[static_cast<std::size_t>(e)], i, j, t);
        const T c = data.c(t)(i, j);
        const std::string element = where + " element " + std::to_string(i) + ", " + std::to_string(j);
        if constexpr (core::is_complex<T>) {
          promised += expect_kept<T>(Mpfr(c.real()), c.real(), exact[0], promise, element + " re") ? 1 : 0;
          expect_kept<T>(Mpfr(c.imag()), c.imag(), exact[1], promise, element + " im");
        } else if constexpr (std::is_same_v<T, DoubleDouble>) {
          const Mpfr value = std::isfinite(c.hi) ? exact_value(c) : Mpfr();
          promised += expect_kept<T>(value, c.hi, exact[0], promise, element) ? 1 : 0;
        } else {
          promised += expect_kept<T>(Mpfr(c), c, exact[0], promise, element) ? 1 : 0;
        }
      }
    }
  }
  return promised;
}

}  // namespace kintsugi::test
