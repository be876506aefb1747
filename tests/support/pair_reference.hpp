// Double-double products by MPFR, rounded only once, when the result becomes a pair of doubles.
#pragma once

#include <cmath>
#include <vector>

#include "formats/double_double.hpp"
#include "tests/support/gemm_case.hpp"
#include "tests/support/mpfr_value.hpp"

namespace kintsugi::test {

using core::DoubleDouble;
using measure::testing::Mpfr;
using measure::testing::power_of_two;

inline Mpfr exact_value(const DoubleDouble& x) { return Mpfr(x.hi) + Mpfr(x.lo); }

// The nearest double-double number: hi = RN(x), lo = RN(x - hi), then renormalised so that hi = RN(hi + lo).
inline DoubleDouble rounded_pair(const Mpfr& x) {
  const double high = x.to_double();
  if (!std::isfinite(high)) return {high, 0};
  const double low = (x - Mpfr(high)).to_double();
  const double sum = high + low;
  if (!std::isfinite(sum)) return {sum, 0};
  return {sum, (Mpfr(high) + Mpfr(low) - Mpfr(sum)).to_double()};
}

// alpha op(A) op(B) + beta C of finite data, and |alpha| |A||B| + |beta C|. Has to be made before the product
// runs, since it reads C.
struct PairReference {
  std::vector<Mpfr> values;  // (i, j) at i + j m
  std::vector<Mpfr> magnitudes;

  explicit PairReference(GemmDataOf<DoubleDouble>& data) {
    const GemmCase& test = data.test();
    for (std::int64_t j = 0; j < test.n; ++j) {
      for (std::int64_t i = 0; i < test.m; ++i) add_element(data, i, j);
    }
  }

 private:
  void add_element(GemmDataOf<DoubleDouble>& data, std::int64_t i, std::int64_t j) {
    Mpfr sum, magnitudes_sum;
    for (std::int64_t p = 0; p < data.test().k; ++p) {
      const Mpfr product = exact_value(data.a()(i, p)) * exact_value(data.b()(p, j));
      sum += product;
      magnitudes_sum += magnitude(product);
    }
    sum *= exact_value(data.alpha());
    magnitudes_sum *= magnitude(exact_value(data.alpha()));
    if (!(data.beta() == DoubleDouble(0))) {
      const Mpfr old = exact_value(data.beta()) * exact_value(data.c()(i, j));
      sum += old;
      magnitudes_sum += magnitude(old);
    }
    EXPECT_TRUE(sum.exact()) << "the reference was rounded";
    values.push_back(sum);
    magnitudes.push_back(magnitudes_sum);
  }
};

}  // namespace kintsugi::test
