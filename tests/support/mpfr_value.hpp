// MPFR numbers that hold any sum of these tests exactly, as an independent reference.
#pragma once

#include <mpfr.h>

#include <cmath>
#include <limits>

namespace kintsugi::measure::testing {

// Products of three doubles have bits from 2^-3222 to 2^3072; the rest is for carries.
inline constexpr mpfr_prec_t exact_precision = 6600;

class Mpfr {
 public:
  explicit Mpfr(double x = 0) {
    mpfr_init2(value_, exact_precision);
    mpfr_set_d(value_, x, MPFR_RNDN);
  }
  ~Mpfr() { mpfr_clear(value_); }
  Mpfr(const Mpfr& other) : Mpfr() { mpfr_set(value_, other.value_, MPFR_RNDN); }
  Mpfr& operator=(const Mpfr& other) {
    mpfr_set(value_, other.value_, MPFR_RNDN);
    return *this;
  }

  // MPFR returns whether a result was rounded; exact() is true if none was.
  Mpfr& operator+=(const Mpfr& x) { return keep_exactness(mpfr_add(value_, value_, x.value_, MPFR_RNDN)); }
  Mpfr& operator-=(const Mpfr& x) { return keep_exactness(mpfr_sub(value_, value_, x.value_, MPFR_RNDN)); }
  Mpfr& operator*=(const Mpfr& x) { return keep_exactness(mpfr_mul(value_, value_, x.value_, MPFR_RNDN)); }
  friend Mpfr operator*(Mpfr a, const Mpfr& b) { return a *= b; }
  friend Mpfr operator+(Mpfr a, const Mpfr& b) { return a += b; }
  friend Mpfr operator-(Mpfr a, const Mpfr& b) { return a -= b; }
  friend Mpfr magnitude(Mpfr a) {
    mpfr_abs(a.value_, a.value_, MPFR_RNDN);
    return a;
  }
  friend Mpfr power_of_two(long exponent) {
    Mpfr result;
    mpfr_set_ui_2exp(result.value_, 1, exponent, MPFR_RNDN);
    return result;
  }

  bool exact() const { return exact_; }
  int sign() const { return mpfr_sgn(value_); }
  double to_double() const { return mpfr_get_d(value_, MPFR_RNDN); }
  float to_float() const { return mpfr_get_flt(value_, MPFR_RNDN); }
  mpfr_ptr get() { return value_; }
  mpfr_srcptr get() const { return value_; }

  // |a| / |b| rounded to double.
  friend double ratio(const Mpfr& a, const Mpfr& b) {
    Mpfr quotient;
    mpfr_div(quotient.value_, a.value_, b.value_, MPFR_RNDN);
    return std::fabs(quotient.to_double());
  }

 private:
  Mpfr& keep_exactness(int inexact) {
    exact_ = exact_ && inexact == 0;
    return *this;
  }

  mpfr_t value_;
  bool exact_ = true;
};

Mpfr power_of_two(long exponent);

}  // namespace kintsugi::measure::testing
