// Error-free transformations (Knuth; Dekker): the rounded result and the exact error beside it.
// Must be compiled without contraction and without fast-math, in round-to-nearest.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

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

// Double-double numbers: the unevaluated sum of two doubles, hi = RN(hi + lo) (Dekker 1971).

struct DoubleDouble {
  constexpr DoubleDouble(double high = 0, double low = 0) : hi(high), lo(low) {}

  friend constexpr bool operator==(const DoubleDouble&, const DoubleDouble&) = default;

  double hi;
  double lo;
};

template <class T>
inline constexpr bool is_double_double = std::is_same_v<T, DoubleDouble>;

constexpr bool is_finite(double x) { return x - x == 0; }

// Returns the number that a pair in memory represents. If both doubles are finite, it is their sum, which may
// overflow. If hi is infinite or NaN, the number is hi, and lo is ignored.
constexpr DoubleDouble normalized(const DoubleDouble& pair) {
  if (!is_finite(pair.hi)) return {pair.hi, 0};
  const auto sum = two_sum(pair.hi, pair.lo);
  return is_finite(sum.value) ? DoubleDouble{sum.value, sum.error} : DoubleDouble{sum.value, 0};
}

// Returns x rounded to double. Exponents and special values are read from this double.
constexpr double leading_part(float x) { return x; }
constexpr double leading_part(double x) { return x; }
constexpr double leading_part(const DoubleDouble& pair) { return normalized(pair).hi; }

// Returns a finite number rounded to double away from zero. The largest double is returned unchanged, without
// overflow.
constexpr double away_from_zero(const DoubleDouble& pair) {
  const DoubleDouble x = normalized(pair);
  const bool hi_is_below = x.hi > 0 ? x.lo > 0 : x.lo < 0;
  const double next = std::bit_cast<double>(std::bit_cast<std::uint64_t>(x.hi) + 1);
  return hi_is_below && is_finite(next) ? next : x.hi;
}

// Returns a finite number rounded to double towards zero.
constexpr double truncated(const DoubleDouble& pair) {
  const DoubleDouble x = normalized(pair);
  const bool hi_is_above = x.hi > 0 ? x.lo < 0 : x.lo > 0;
  return hi_is_above ? std::bit_cast<double>(std::bit_cast<std::uint64_t>(x.hi) - 1) : x.hi;
}

}  // namespace kintsugi::core
