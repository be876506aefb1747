// Products whose correctly rounded elements are known by construction: ties, ties and numbers of T with a
// term far below them, subnormal results, underflow to zero and the edge of overflow, each with larger
// products that cancel.
//
// Every column of B is non-zero only at inner indices that no other column uses, so every element of C has
// its own elements in A. So m n answers are chosen freely, and one call computes all of them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tools/measure/generators/random.hpp"

namespace kintsugi::test {

using measure::Random;

__extension__ using Int128 = __int128;
__extension__ using UnsignedInt128 = unsigned __int128;

template <class T>
struct RoundingLimits {
  static constexpr int digits = std::numeric_limits<T>::digits;
  // Exponents of the last bit of the smallest subnormal, and of that of the largest number.
  static constexpr int lowest = std::numeric_limits<T>::min_exponent - digits;
  static constexpr int highest = std::numeric_limits<T>::max_exponent - digits;
  static constexpr std::uint64_t top = std::uint64_t{1} << (digits - 1);  // leading bit of a significand
};

// C = alpha A B + beta C, column-major, and the expected C.
template <class T>
struct RoundingProblem {
  RoundingProblem(std::int64_t rows, std::int64_t columns, std::int64_t inner)
      : m(rows), n(columns), k(inner), a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
        c(static_cast<std::size_t>(m * n), std::numeric_limits<T>::quiet_NaN()), expected(c.size()) {}

  std::int64_t m, n, k;
  std::vector<T> a, b, c, expected;
  T alpha = 1, beta = 0;
};

// Exponents of an element of A and one of B whose product is an integer of at most `digits` bits times
// 2^product: B's is 2^b, A's is the integer times 2^(product - b).
struct FactorExponents {
  int product;
  int b;
};

// Chooses b for that product, so that both factors are numbers of T: near the middle, which keeps the
// dynamic ranges of A and B narrow, or anywhere.
template <class T>
FactorExponents choose_exponents(Random& random, int product, bool anywhere) {
  using L = RoundingLimits<T>;
  const int min = std::max(L::lowest, product - L::highest);
  const int max = std::min(std::numeric_limits<T>::max_exponent - 1, product - L::lowest);
  const int middle = std::clamp(product >> 1, min, max);
  return {product, anywhere ? static_cast<int>(random.integer(min, max)) : middle};
}

// True if two numbers of T have a product with that exponent.
template <class T>
bool has_factors(int product) {
  using L = RoundingLimits<T>;
  return product >= 2 * L::lowest && product <= L::highest + std::numeric_limits<T>::max_exponent - 1;
}

// Part of the exact number beyond significand 2^last; it decides how the number is rounded.
enum class Rest : std::uint8_t { none, below_half, half, above_half, little_more, little_less };

struct Chosen {
  std::uint64_t significand;
  Rest rest;

  std::uint64_t rounded() const {
    if (rest == Rest::above_half) return significand + 1;
    return rest == Rest::half ? significand + (significand & 1U) : significand;
  }
};

// A problem of chosen elements. The columns share alpha and beta, which are drawn at random.
template <class T>
class ConstructedRounding {
 public:
  using L = RoundingLimits<T>;
  // Terms of the sums of a column, each with an inner index of its own: a product, the low and high half of
  // its negative, the chosen number, half a unit of its last digit, a term far below that, and the low and
  // high half of -beta C.
  enum TermIndex {
    product_term,
    low_term,
    high_term,
    number_term,
    half_term,
    little_term,
    c_low_term,
    c_high_term
  };
  static constexpr int block = c_high_term + 1;  // inner indices of a column

  ConstructedRounding(Random& random, std::int64_t rows, std::int64_t columns, int max_depth, bool anywhere,
                      bool with_scalars)
      : random_(random), anywhere_(anywhere), max_depth_(max_depth),
        problem_(rows, columns, columns * block) {
    if (with_scalars) {
      alpha_exponent_ = static_cast<int>(random_.integer(-20, 20));
      alpha_sign_ = random_.flip() ? -1 : 1;
      problem_.alpha = std::ldexp(static_cast<T>(alpha_sign_), alpha_exponent_);
      beta_ = significand();
      problem_.beta = std::ldexp(static_cast<T>(beta_), -L::digits);
    }
    const int last = draw_last();
    for (std::int64_t j = 0; j < columns; ++j) fill_column(j, anywhere ? draw_last() : last);
  }

  const RoundingProblem<T>& problem() const { return problem_; }

 private:
  struct Column {
    int last;  // exponent of the results' last digit
    std::uint64_t factor;
    int c_exponent;
    std::array<FactorExponents, block> terms;  // by TermIndex
    std::array<int, block> order;              // inner index of each term in the column's block
  };

  std::uint64_t significand() { return L::top | (random_.bits() & (L::top - 1)) | 1U; }

  // Draws the exponent of the last digit: the lowest, the highest, or any.
  int draw_last() {
    switch (random_.integer(0, 3)) {
      case 0: return L::lowest;
      case 1: return L::highest;
      default: return static_cast<int>(random_.integer(L::lowest, L::highest));
    }
  }

  bool draw(Column& column) {
    const int last = column.last - alpha_exponent_;
    const int depth = static_cast<int>(random_.integer(3, max_depth_));
    const int cancelled = last + static_cast<int>(random_.integer(anywhere_ ? -2 * L::digits : -L::digits,
                                                                  anywhere_ ? 200 : 4));
    const int old = column.last + static_cast<int>(random_.integer(-2 * L::digits, 4));
    column.c_exponent = old + L::digits;  // beta = beta_ 2^-digits
    const bool c_is_in_range = column.c_exponent >= L::lowest && column.c_exponent <= L::highest;
    std::array<int, block> products;
    products[product_term] = products[low_term] = cancelled;
    products[high_term] = cancelled + L::digits;
    products[number_term] = last;
    products[half_term] = last - 1;
    products[little_term] = last - depth;
    products[c_low_term] = old - alpha_exponent_;
    products[c_high_term] = old - alpha_exponent_ + L::digits;
    if (!std::all_of(products.begin(), products.end(), has_factors<T>)) return false;
    if (beta_ != 0 && !c_is_in_range) return false;
    // This order of drawing keeps the cases of a seed.
    for (const int term :
         {number_term, half_term, little_term, product_term, low_term, high_term, c_low_term, c_high_term})
      column.terms[term] = choose_exponents<T>(random_, products[term], anywhere_);
    column.factor = significand();
    return column.terms[product_term].b + L::digits < std::numeric_limits<T>::max_exponent;
  }

  Column draw_column(int last) {
    Column column{};
    column.last = last;
    while (!draw(column)) {
    }
    for (int s = 0; s < block; ++s) column.order[s] = s;
    for (int s = block - 1; s > 0; --s) std::swap(column.order[s], column.order[random_.integer(0, s)]);
    return column;
  }

  Chosen choose(int last) {
    static constexpr Rest rests[] = {Rest::none,       Rest::half,        Rest::half,       Rest::below_half,
                                     Rest::above_half, Rest::little_more, Rest::little_less};
    const Rest rest = rests[random_.integer(0, 6)];
    const std::uint64_t all = 2 * L::top - 1;
    std::uint64_t number = L::top | (random_.bits() & (L::top - 1));
    if (last == L::lowest) number >>= random_.integer(0, L::digits);  // subnormal, or zero
    const auto shape = random_.integer(0, 7);
    if (shape == 0 || (last == L::highest && shape < 6)) number = all;
    if (shape == 7) number = L::top;
    return {number, rest};
  }

  // Sets the elements of A so that the sum is the chosen number. All products are exact: significands of T
  // times powers of two.
  void fill_element(std::int64_t i, std::int64_t j, const Column& column) {
    const Chosen chosen = choose(column.last);
    const bool half =
        chosen.rest == Rest::half || chosen.rest == Rest::below_half || chosen.rest == Rest::above_half;
    const bool more = chosen.rest == Rest::above_half || chosen.rest == Rest::little_more;
    const bool less = chosen.rest == Rest::below_half || chosen.rest == Rest::little_less;
    const int sign = random_.flip() ? -1 : 1;
    const int inner_sign = sign * alpha_sign_;
    const std::uint64_t first = random_.bits() >> (64 - L::digits);
    const auto product = static_cast<UnsignedInt128>(first) * column.factor;
    const std::uint64_t mask = 2 * L::top - 1;
    set(i, j, column, product_term, first, -inner_sign);
    set(i, j, column, low_term, static_cast<std::uint64_t>(product) & mask, inner_sign);
    set(i, j, column, high_term, static_cast<std::uint64_t>(product >> L::digits), inner_sign);
    set(i, j, column, number_term, chosen.significand, inner_sign);
    set(i, j, column, half_term, half ? 1 : 0, inner_sign);
    set(i, j, column, little_term, more || less ? 1 : 0, less ? -inner_sign : inner_sign);
    if (beta_ != 0) cancel_old_element(i, j, column);
    const bool nothing = chosen.significand == 0 && chosen.rest == Rest::none;
    const bool negative = sign < 0 && !nothing;
    const bool below_zero = chosen.significand == 0 && chosen.rest == Rest::little_less;
    // The sign changes where the number rounds to 0 and its rest lies on the other side of it.
    const double magnitude = std::ldexp(static_cast<double>(chosen.rounded()), column.last);
    problem_.expected[i + j * problem_.m] = static_cast<T>(negative != below_zero ? -magnitude : magnitude);
  }

  // Draws an element of C whose product with beta two terms of the sum cancel.
  void cancel_old_element(std::int64_t i, std::int64_t j, const Column& column) {
    const std::uint64_t old = random_.bits() >> (64 - L::digits);
    const auto product = static_cast<UnsignedInt128>(old) * beta_;
    problem_.c[i + j * problem_.m] = std::ldexp(static_cast<T>(old), column.c_exponent);
    set(i, j, column, c_low_term, static_cast<std::uint64_t>(product) & (2 * L::top - 1), -alpha_sign_);
    set(i, j, column, c_high_term, static_cast<std::uint64_t>(product >> L::digits), -alpha_sign_);
  }

  // Sets A's element of a term of C's element (i, j), so that the term is sign * integer * 2^product.
  void set(std::int64_t i, std::int64_t j, const Column& column, TermIndex term, std::uint64_t integer,
           int sign) {
    const std::int64_t p = j * block + column.order[term];
    const FactorExponents& exponents = column.terms[term];
    const T value = std::ldexp(static_cast<T>(integer), exponents.product - exponents.b);
    problem_.a[i + p * problem_.m] = sign < 0 ? -value : value;
  }

  void fill_column(std::int64_t j, int last) {
    const Column column = draw_column(last);
    for (int term = 0; term < block; ++term) {
      const T factor = term == product_term ? static_cast<T>(column.factor) : T(1);
      problem_.b[j * block + column.order[term] + j * problem_.k] = std::ldexp(factor, column.terms[term].b);
    }
    for (std::int64_t i = 0; i < problem_.m; ++i) fill_element(i, j, column);
  }

  Random& random_;
  bool anywhere_;
  int max_depth_;
  int alpha_exponent_ = 0;
  int alpha_sign_ = 1;
  std::uint64_t beta_ = 0;
  RoundingProblem<T> problem_;
};

// alpha x + beta C is a tie between two numbers of T, or slightly beside one. alpha, beta and x have random
// significands, and C follows from them modulo 2^(digits - 1).
template <class T>
class TiesOfScalars {
 public:
  using L = RoundingLimits<T>;
  static constexpr int block = 2;
  static constexpr int width = L::digits - 1;

  TiesOfScalars(Random& random, std::int64_t rows, std::int64_t columns)
      : random_(random), problem_(rows, columns, columns * block), alpha_(scalar()), beta_(scalar()) {
    problem_.alpha = std::ldexp(static_cast<T>(alpha_), -L::digits);
    problem_.beta = std::ldexp(static_cast<T>(beta_), -L::digits);
    constexpr int range = std::numeric_limits<T>::max_exponent / 4;
    for (std::int64_t j = 0; j < columns; ++j) {
      const int unit = static_cast<int>(random.integer(-range, range));
      const int below = unit - static_cast<int>(random.integer(3, range));
      problem_.b[j * block + j * problem_.k] = std::ldexp(T(1), unit / 2);
      problem_.b[j * block + 1 + j * problem_.k] = std::ldexp(T(1), below / 2);
      for (std::int64_t i = 0; i < rows; ++i) fill_element(i, j, unit, below);
    }
  }

  const RoundingProblem<T>& problem() const { return problem_; }

 private:
  // Draws an odd integer slightly above a power of two, so that the length of sums varies little.
  std::uint64_t scalar() { return L::top | (random_.bits() & (L::top / 8 - 1)) | 1U; }

  std::uint64_t inverse_of_beta() const {
    std::uint64_t inverse = beta_;  // correct to 3 bits; every step doubles their number
    for (int step = 0; step < 5; ++step) inverse *= 2 - beta_ * inverse;
    return inverse;
  }

  void fill_element(std::int64_t i, std::int64_t j, int unit, int below) {
    constexpr std::uint64_t half = std::uint64_t{1} << (width - 1);
    constexpr std::uint64_t mask = 2 * half - 1;
    std::uint64_t x = 0, kept = 0;
    std::int64_t old = 0;
    do {
      x = random_.bits() >> (64 - L::digits);
      old = static_cast<std::int64_t>(((half - alpha_ * x) * inverse_of_beta()) & mask);
      if (random_.flip()) old -= static_cast<std::int64_t>(mask) + 1;
      const Int128 sum =
          static_cast<Int128>(alpha_) * static_cast<Int128>(x) + static_cast<Int128>(beta_) * old;
      kept = sum > 0 ? static_cast<std::uint64_t>(sum >> width) : 0;
    } while (std::bit_width(kept) != L::digits);
    const int side = static_cast<int>(random_.integer(-1, 1));  // side of the tie on which the sum is
    const T sign = random_.flip() ? T(-1) : T(1);
    const std::uint64_t rounded = side > 0 ? kept + 1 : side < 0 ? kept : kept + (kept & 1U);
    T* row = problem_.a.data() + i + j * block * problem_.m;
    row[0] = sign * std::ldexp(static_cast<T>(x), unit - unit / 2);
    row[problem_.m] = sign * std::ldexp(static_cast<T>(side), below - below / 2);
    problem_.c[i + j * problem_.m] = sign * std::ldexp(static_cast<T>(old), unit);
    problem_.expected[i + j * problem_.m] =
        sign * std::ldexp(static_cast<T>(rounded), unit - L::digits + width);
  }

  Random& random_;
  RoundingProblem<T> problem_;
  std::uint64_t alpha_;
  std::uint64_t beta_;
};

}  // namespace kintsugi::test
