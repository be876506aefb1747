// Sums in digits, as kernels hold them, against the host's accumulator: the same bits.
#include "arith/exact/exact_digits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include "arith/complex.hpp"
#include "recombine/recombine.hpp"

namespace kintsugi::core {
namespace {

constexpr int lanes = 4;

// Computes an element as a warp does, with fewer lanes: lanes take products in turn, and their digits are
// added.
template <class T>
class LaneSums {
 public:
  explicit LaneSums(const std::vector<T>& x, const std::vector<T>& y) {
    using Widths = ExactWidths<T>;
    std::vector<std::int64_t> memory(lanes * Widths::sum_digits);
    int first = Widths::sum_digits;
    int last = -1;
    for (int lane = 0; lane < lanes; ++lane) {
      ExactDigits<lanes> sum(memory.data() + lane, Widths::sum_bottom);
      for (std::size_t p = static_cast<std::size_t>(lane); p < x.size(); p += lanes)
        sum.add_product(x[p], y[p]);
      sum.carry();
      first = std::min(first, sum.first());
      last = std::max(last, sum.last());
      EXPECT_LT(sum.last(), Widths::sum_digits);
    }
    for (int d = 0; d < Widths::sum_digits; ++d) {
      for (int lane = 0; lane < lanes; ++lane)
        digits_[static_cast<std::size_t>(d)] += memory[d * lanes + lane];
    }
    part_.magnitude.set_bounds(first, last);
    part_.negative = part_.magnitude.make_magnitude();
  }
  LaneSums(const LaneSums&) = delete;
  LaneSums& operator=(const LaneSums&) = delete;

  const ExactPart& part() const { return part_; }

 private:
  std::vector<std::int64_t> digits_ = std::vector<std::int64_t>(ExactWidths<T>::sum_digits);
  ExactPart part_{ExactDigits<1>(digits_.data(), ExactWidths<T>::sum_bottom), false};
};

template <class T>
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : random_(seed) {}

  // Draws a number with an exponent from -spread to spread, as far as the type has it.
  T draw(int spread) {
    using limits = std::numeric_limits<T>;
    const int lowest = std::max(-spread, limits::min_exponent - limits::digits);
    const int highest = std::min(spread, limits::max_exponent - 1);
    const int exponent = lowest + static_cast<int>(random_() % static_cast<unsigned>(highest - lowest + 1));
    const T fraction =
        1 + static_cast<T>(random_() % 8) / 8 + limits::epsilon() * static_cast<T>(random_() % 4);
    const T value = std::ldexp(fraction, std::min(exponent, limits::max_exponent - 1));
    return random_() % 2 == 0 ? value : -value;
  }
  std::vector<T> vector(std::size_t length, int spread) {
    std::vector<T> result(length);
    for (T& x : result) x = draw(spread);
    return result;
  }
  std::uint64_t next() { return random_(); }

 private:
  std::mt19937_64 random_;
};

template <class T>
void expect_same(T x, T y) {
  if (std::isnan(x) || std::isnan(y)) {
    EXPECT_EQ(std::isnan(x), std::isnan(y));
  } else {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    EXPECT_EQ(std::bit_cast<Bits>(x), std::bit_cast<Bits>(y)) << x << " and " << y;
  }
}

template <class T>
ExactSum host_sum(const std::vector<T>& x, const std::vector<T>& y) {
  ExactSum sum;
  sum.add_products(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  return sum;
}

template <class T>
void expect_host_result(const std::vector<T>& x, const std::vector<T>& y, T alpha, T beta, const T* c) {
  const LaneSums<T> sums(x, y);
  std::vector<std::int64_t> scratch(ExactWidths<T>::result_digits);
  ExactSum sum = host_sum(x, y);
  EXPECT_EQ(sums.part().sign(), sum.sign());
  expect_same(exact_epilogue(sums.part(), alpha, beta, c, scratch.data()),
              rounded_result(sum, alpha, beta, c));
  EXPECT_EQ(scratch, std::vector<std::int64_t>(scratch.size())) << "scratch is left zero";
}

// Makes the second half of the products cancel the first half, sometimes all but one product.
template <class T>
void cancel(std::vector<T>& x, std::vector<T>& y, Numbers<T>& numbers) {
  for (std::size_t p = 0; p < x.size() / 2; ++p) {
    x[x.size() - 1 - p] = -x[p];
    y[x.size() - 1 - p] = y[p];
  }
  if (numbers.next() % 2 == 0) x[0] = numbers.draw(2000);
}

template <class T>
void sweep_results() {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Numbers<T> numbers(seed);
    const int spread = std::array{2, 30, 300, 2000}[seed % 4];
    auto x = numbers.vector(1 + seed % 37, spread);
    auto y = numbers.vector(x.size(), spread);
    if (seed % 3 == 0) cancel(x, y, numbers);
    const T alpha = seed % 5 == 0 ? T(1) : numbers.draw(spread);
    const T c = numbers.draw(2 * spread);
    const T beta = seed % 2 == 0 ? T(0) : numbers.draw(spread);
    expect_host_result(x, y, alpha, beta, beta == T(0) ? nullptr : &c);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(ExactDigits, ResultsHaveTheBitsOfTheHost) {
  sweep_results<float>();
  sweep_results<double>();
}

template <class T>
void expect_extremes() {
  using limits = std::numeric_limits<T>;
  const std::vector<T> largest(130, limits::max());
  const std::vector<T> smallest(130, limits::denorm_min());
  const T one = 1;
  for (const auto& x : {largest, smallest, std::vector<T>(130, T(0))}) {
    for (const auto& y : {largest, smallest}) {
      for (const T alpha : {T(1), limits::max(), limits::denorm_min(), -limits::min(), T(0.75)}) {
        expect_host_result<T>(x, y, alpha, 0, nullptr);
        expect_host_result<T>(x, y, alpha, limits::max(), &one);
      }
    }
  }
}

// A random vector whose elements lie in the `dynamic_range` + 1 binades down from 2^top.
template <class T>
struct VectorOfRange {
  std::vector<T> elements;
  VectorRange range;

  VectorOfRange(std::mt19937_64& random, std::size_t length, int top, int dynamic_range) : elements(length) {
    for (T& x : elements) {
      const int exponent = top - static_cast<int>(random() % static_cast<unsigned>(dynamic_range + 1));
      const auto fraction = static_cast<T>(1 + std::ldexp(static_cast<double>(random() >> 11), -53));
      x = std::ldexp(random() % 2 == 0 ? fraction : -fraction, exponent);
      extend(range, x);
    }
  }
};

// The sum in the window's digits is that in all digits, and nothing outside the window is written.
template <class T>
void expect_window(const VectorOfRange<T>& row, const VectorOfRange<T>& column) {
  using Widths = ExactWidths<T>;
  constexpr int guards = 3;
  constexpr std::int64_t untouched = 0x5a5a5a5a5a5a5a5a;
  const auto products = static_cast<std::int64_t>(row.elements.size());
  const ExactWindow window = exact_window<T>(row.range, column.range, products);
  ASSERT_LE(window.digits, Widths::sum_digits);
  std::vector<std::int64_t> window_digits(static_cast<std::size_t>(window.digits + 2 * guards), untouched);
  std::fill_n(window_digits.begin() + guards, window.digits, 0);
  std::vector<std::int64_t> all_digits(Widths::sum_digits);
  ExactDigits<1> in_window(window_digits.data() + guards, window.bottom);
  ExactDigits<1> anywhere(all_digits.data(), Widths::sum_bottom);
  for (std::size_t p = 0; p < row.elements.size(); ++p) {
    in_window.add_product(row.elements[p], column.elements[p]);
    anywhere.add_product(row.elements[p], column.elements[p]);
  }
  const bool negative = in_window.make_magnitude();
  ASSERT_EQ(negative, anywhere.make_magnitude());
  ASSERT_EQ(in_window.template rounded_magnitude<T>(negative),
            anywhere.template rounded_magnitude<T>(negative));
  ASSERT_EQ(std::count(window_digits.begin(), window_digits.begin() + guards, untouched), guards);
  ASSERT_EQ(std::count(window_digits.end() - guards, window_digits.end(), untouched), guards);
}

template <class T>
void expect_windows() {
  std::mt19937_64 random(11);
  for (int round = 0; round < 2000 && !testing::Test::HasFailure(); ++round) {
    const int max_range = round % 2 == 0 ? 30 : 2 * std::numeric_limits<T>::max_exponent;
    const int dynamic_range = static_cast<int>(random() % static_cast<unsigned>(max_range));
    const int top = static_cast<int>(random() % 200) - 100;
    const std::size_t length = 1 + random() % 50;
    const VectorOfRange<T> row(random, length, top, dynamic_range);
    expect_window(row, VectorOfRange<T>(random, length, -top / 2, dynamic_range));
  }
}

TEST(ExactDigits, WindowsHoldTheSumsOfTheirVectors) {
  expect_windows<float>();
  expect_windows<double>();
}

TEST(ExactDigits, TheSmallestAndTheLargestNumbersFit) {
  expect_extremes<float>();
  expect_extremes<double>();
}

// alpha x = -beta c but for the last bit of x, two thousand bits below.
TEST(ExactDigits, CancellationAgainstTheOldElementLeavesTheDifference) {
  const std::vector<double> x{0x1p500, 0x1p-500, -0x1p-600};
  const std::vector<double> y{0x1p400, 0x1p-500, 0x1p-400};
  const double c = 0x1p900;
  expect_host_result(x, y, 1.0, -1.0, &c);
  expect_host_result(x, y, 3.0, -3.0, &c);
}

// Sums more products than the digits can take without a carry.
template <class T>
void expect_long_sums() {
  for (const T sign : {T(1), T(-1)}) {
    const std::vector<T> x(20000, std::numeric_limits<T>::max());
    std::vector<T> y(x.size(), sign * (2 - std::numeric_limits<T>::epsilon()));
    expect_host_result<T>(x, y, std::numeric_limits<T>::min(), 0, nullptr);
    for (std::size_t p = 0; p < y.size(); p += 3) y[p] = -y[p];
    expect_host_result<T>(x, y, std::numeric_limits<T>::min(), 0, nullptr);
  }
}

TEST(ExactDigits, LongSumsCarry) {
  expect_long_sums<float>();
  expect_long_sums<double>();
}

// Ties of normal and subnormal results, alone and with a bit far below that decides them.
TEST(ExactDigits, TiesGoToEvenUnlessALowerBitDecides) {
  for (const double last : {0x1p-52, 0x1p-1074}) {
    for (const int odd : {0, 1}) {
      for (const double rest : {0.0, 0x1p-1000, -0x1p-1000}) {
        const double lead = last == 0x1p-52 ? 1.0 + odd * last : (2.0 + odd) * last;
        const std::vector<double> x{lead, last, rest};
        const std::vector<double> y{1.0, 0.5, 0x1p-74};
        expect_host_result<double>(x, y, 1, 0, nullptr);
        expect_host_result<double>(x, y, -1, 0, nullptr);
      }
    }
  }
}

template <class T>
void sweep_special_scalars() {
  using limits = std::numeric_limits<T>;
  const T values[] = {limits::quiet_NaN(), limits::infinity(), -limits::infinity(), T(0), T(1),
                      limits::max()};
  for (const T alpha : values) {
    for (const T beta : values) {
      for (const T c : values) {
        for (const T x : {T(0), T(2), T(-3)})
          expect_host_result<T>({x}, {T(5)}, alpha, beta, beta == T(0) ? nullptr : &c);
      }
    }
  }
}

TEST(ExactDigits, SpecialScalarsGiveTheBitsOfTheHost) {
  sweep_special_scalars<float>();
  sweep_special_scalars<double>();
}

template <class T>
void expect_complex_result(const std::vector<T> (&x)[2], const std::vector<T> (&y)[2], std::complex<T> alpha,
                           std::complex<T> beta, const std::complex<T>& c) {
  using Z = Complex<T>;
  const LaneSums<T> re(x[0], y[0]);
  const LaneSums<T> im(x[1], y[1]);
  std::vector<std::int64_t> scratch(ExactWidths<T>::result_digits);
  const bool reads = beta != T(0);
  const Z old(c.real(), c.imag());
  const Z result = exact_epilogue(re.part(), im.part(), Z(alpha.real(), alpha.imag()),
                                  Z(beta.real(), beta.imag()), reads ? &old : nullptr, scratch.data());
  const auto wanted =
      exact_epilogue(host_sum(x[0], y[0]), host_sum(x[1], y[1]), alpha, beta, reads ? &c : nullptr);
  expect_same(result.real(), wanted.real());
  expect_same(result.imag(), wanted.imag());
}

template <class T>
void sweep_complex_results() {
  using limits = std::numeric_limits<T>;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Numbers<T> numbers(seed);
    const int spread = std::array{2, 30, 2000}[seed % 3];
    const std::vector<T> x[2] = {numbers.vector(9, spread), numbers.vector(9, spread)};
    const std::vector<T> y[2] = {numbers.vector(9, spread), numbers.vector(9, spread)};
    const auto scalar = [&](std::uint64_t kind) {
      const T special = std::array{limits::infinity(), limits::quiet_NaN()}[seed % 2];
      return std::complex<T>(kind % 4 == 0 ? T(1) : numbers.draw(spread), kind % 3 == 0 ? T(0)
                                                                          : kind % 7 == 0
                                                                              ? special
                                                                              : numbers.draw(spread));
    };
    expect_complex_result<T>(x, y, scalar(seed), seed % 2 == 0 ? T(0) : scalar(seed / 2), scalar(seed / 3));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(ExactDigits, ComplexResultsHaveTheBitsOfTheHost) {
  sweep_complex_results<float>();
  sweep_complex_results<double>();
}

}  // namespace
}  // namespace kintsugi::core
