// Wide integers and their one rounding, against MPFR.
#include "arith/exact/exact_rounding.hpp"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <random>

#include "arith/complex.hpp"

namespace kintsugi::core {
namespace {

class Reference {
 public:
  explicit Reference(double x = 0) {
    mpfr_init2(value_, 8000);
    mpfr_set_d(value_, x, MPFR_RNDN);
  }
  template <int Limbs>
  explicit Reference(const ExactNumber<Limbs>& x) : Reference() {
    for (int l = Limbs - 1; l >= 0; --l) {
      mpfr_mul_2ui(value_, value_, 64, MPFR_RNDN);
      mpfr_add_ui(value_, value_, x.magnitude.limb[l], MPFR_RNDN);
    }
    mpfr_mul_2si(value_, value_, x.exponent, MPFR_RNDN);
    if (x.negative) mpfr_neg(value_, value_, MPFR_RNDN);
  }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  ~Reference() { mpfr_clear(value_); }

  // this = this * factor + x * y
  Reference& scale_and_add(double factor, double x, double y) {
    const Reference a(x), b(y), f(factor);
    mpfr_mul(value_, value_, f.value_, MPFR_RNDN);
    mpfr_mul(a.value_, a.value_, b.value_, MPFR_RNDN);
    EXPECT_EQ(mpfr_add(value_, value_, a.value_, MPFR_RNDN), 0) << "the reference was rounded";
    return *this;
  }

  template <class T>
  T rounded() const {
    // MPFR has no subnormals, so the reference rounds to as many bits as a subnormal result has.
    constexpr int smallest = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
    if (mpfr_zero_p(value_)) return 0;
    const long bits = std::min<long>(std::numeric_limits<T>::digits, mpfr_get_exp(value_) - smallest);
    if (bits < 1) {  // at most one unit of the last place
      const Reference half(std::numeric_limits<double>::denorm_min());
      mpfr_set_ui_2exp(half.value_, 1, smallest - 1, MPFR_RNDN);
      const bool up = mpfr_cmpabs(value_, half.value_) > 0;
      return (mpfr_signbit(value_) != 0 ? -1 : 1) * (up ? std::numeric_limits<T>::denorm_min() : T(0));
    }
    mpfr_t copy;
    mpfr_init2(copy, bits < 2 ? 2 : bits);
    if (bits >= 2) {
      mpfr_set(copy, value_, MPFR_RNDN);
    } else {  // one bit: multiples of 2^smallest below 2^(smallest + 1)
      mpfr_mul_2si(value_, value_, -smallest, MPFR_RNDN);
      mpfr_rint(copy, value_, MPFR_RNDN);
      mpfr_mul_2si(copy, copy, smallest, MPFR_RNDN);
      mpfr_mul_2si(value_, value_, smallest, MPFR_RNDN);
    }
    const double result = mpfr_get_d(copy, MPFR_RNDN);
    mpfr_clear(copy);
    return static_cast<T>(result);
  }

 private:
  mutable mpfr_t value_;
};

// Draws random bits, runs of zeros and ones, ties and their neighbours.
ExactNumber<6> draw_number(std::mt19937_64& random, int exponent) {
  ExactNumber<6> x;
  const int length = 1 + static_cast<int>(random() % 380);
  for (int l = 0; l < 6; ++l) {
    const auto kind = random() % 4;
    x.magnitude.limb[l] = kind == 0 ? 0 : kind == 1 ? ~std::uint64_t{0} : random();
  }
  x.magnitude = WideInteger<6>::shifted(x.magnitude, length - 384);
  if (random() % 3 == 0) {  // a tie of 24 or 53 bits, and a unit beside it
    const int digits = random() % 2 == 0 ? 24 : 53;
    const int shift = 60 + static_cast<int>(random() % 200);
    WideInteger<6> tie{{(random() >> (64 - digits)) | (std::uint64_t{1} << (digits - 1))}};
    tie = WideInteger<6>::shifted(tie, 1);
    tie.limb[0] |= 1;
    x.magnitude = WideInteger<6>::shifted(tie, shift);
    if (random() % 3 == 0) x.magnitude.limb[0] |= 1;
    if (random() % 3 == 0) x.magnitude.subtract({{1}});
  }
  x.exponent = exponent - x.magnitude.length();
  x.negative = random() % 2 == 0;
  return x;
}

template <class T>
class ExactRounding : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(ExactRounding, Types);

TYPED_TEST(ExactRounding, IsTheNearestNumber) {
  using T = TypeParam;
  constexpr int lowest = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
  std::mt19937_64 random(3);
  for (int draw = 0; draw < 40000; ++draw) {
    const int exponents[] = {0,
                             lowest - 1,
                             lowest,
                             lowest + 1,
                             lowest + 5,
                             lowest + std::numeric_limits<T>::digits,
                             std::numeric_limits<T>::max_exponent,
                             std::numeric_limits<T>::max_exponent + 1};
    const ExactNumber<6> x = draw_number(random, exponents[draw % 8]);
    ASSERT_EQ(rounded<T>(x), Reference(x).rounded<T>()) << draw;
  }
  EXPECT_FALSE(std::signbit(rounded<T>(ExactNumber<6>{{}, 5, true})));
}

template <class T, int Limbs>
void expect_ordinary(const ExactNumber<Limbs>& x) {
  const T expected = rounded<T>(x);
  const T result = rounded_ordinary<T>(x);
  ASSERT_EQ(result, expected) << "exponent " << x.exponent << ", length " << x.magnitude.length();
  ASSERT_EQ(std::signbit(result), std::signbit(expected));
}

// Checks numbers whose leading bits lie in one limb or in two, and whose result overflows or, as a float, is
// subnormal.
template <class T, int Limbs>
void check_ordinary(std::mt19937_64& random) {
  using limits = std::numeric_limits<T>;
  for (int draw = 0; draw < 60000; ++draw) {
    ExactNumber<Limbs> x;
    const ExactNumber<6> drawn = draw_number(random, 0);
    const int length = std::min(drawn.magnitude.length(), 1 + static_cast<int>(random() % (64 * Limbs)));
    x.magnitude = WideInteger<Limbs>::shifted(drawn.magnitude, length - drawn.magnitude.length());
    if (random() % 3 == 0) x.magnitude.limb[0] |= 1;
    x.negative = drawn.negative;
    const int edges[] = {limits::min_exponent - limits::digits,
                         limits::min_exponent,
                         limits::max_exponent,
                         0,
                         -max_ordinary_exponent,
                         max_ordinary_exponent};
    const int edge = edges[draw % 6] + static_cast<int>(random() % 60) - 30;
    x.exponent = std::clamp(draw % 3 == 0 ? edge : edge - x.magnitude.length(), -max_ordinary_exponent,
                            max_ordinary_exponent);
    ASSERT_NO_FATAL_FAILURE((expect_ordinary<T, Limbs>(x))) << Limbs << " limbs, draw " << draw;
  }
  for (const int exponent : {-max_ordinary_exponent, 0, max_ordinary_exponent}) {
    for (const bool negative : {false, true}) {
      ExactNumber<Limbs> x{{}, exponent, negative};
      expect_ordinary<T, Limbs>(x);
      for (int bit = 0; bit < 64 * Limbs; ++bit) {
        x.magnitude = WideInteger<Limbs>::shifted(WideInteger<1>{{1}}, bit);
        expect_ordinary<T, Limbs>(x);
        x.magnitude.subtract({{1}});
        expect_ordinary<T, Limbs>(x);
      }
      x.magnitude.limb.fill(~std::uint64_t{0});
      expect_ordinary<T, Limbs>(x);
    }
  }
}

TYPED_TEST(ExactRounding, TheShortWayForOrdinaryNumbersHasTheSameBits) {
  std::mt19937_64 random(7);
  check_ordinary<TypeParam, 1>(random);
  check_ordinary<TypeParam, 2>(random);
  check_ordinary<TypeParam, 3>(random);
  check_ordinary<TypeParam, 6>(random);
}

TYPED_TEST(ExactRounding, EpilogueIsRoundedOnce) {
  using T = TypeParam;
  std::mt19937_64 random(4);
  const auto number = [&](int spread) {
    const double fraction = 1 + std::ldexp(static_cast<double>(random() >> 12), -52);
    const int exponent = static_cast<int>(random() % (2 * static_cast<unsigned>(spread) + 1)) - spread;
    return static_cast<T>(std::ldexp(random() % 2 == 0 ? fraction : -fraction, exponent));
  };
  for (int draw = 0; draw < 40000; ++draw) {
    const int spread = draw % 3 == 0 ? 60 : 10;
    const ExactNumber<6> x = draw_number(random, static_cast<int>(random() % 100) - 50);
    const T alpha = draw % 5 == 0 ? T(1) : number(spread), beta = number(spread);
    T old = number(spread);
    // Cancellation: the old element is the rounded sum itself.
    if (draw % 4 == 0) old = static_cast<T>(-alpha * rounded<T>(x) / beta);
    if (!std::isfinite(old)) continue;
    const T expected =
        Reference(x)
            .scale_and_add(static_cast<double>(alpha), static_cast<double>(beta), static_cast<double>(old))
            .template rounded<T>();
    ASSERT_EQ(exact_epilogue(x, alpha, beta, &old), expected) << draw;
    const T without = Reference(x).scale_and_add(static_cast<double>(alpha), 0, 0).template rounded<T>();
    ASSERT_EQ(exact_epilogue<T>(x, alpha, 0, nullptr), without) << draw;
  }
}

// The sum is a tie; the term that decides it lies up to thousands of bits below.
TYPED_TEST(ExactRounding, BitsFarBelowATieDecideIt) {
  using T = TypeParam;
  constexpr int digits = std::numeric_limits<T>::digits;
  for (const int last : {0, 1}) {  // last bit of the lower neighbour: even and odd
    const T below = static_cast<T>(std::ldexp(1.0, digits) + 2 * last);
    const T above = below + 2;
    ExactNumber<6> tie;
    tie.magnitude.limb[0] = (std::uint64_t{1} << digits) + 2 * static_cast<unsigned>(last) + 1;
    EXPECT_EQ(rounded<T>(tie), last == 0 ? below : above);
    for (const int far : {1, 60, 100, -std::numeric_limits<T>::min_exponent}) {
      const T small = static_cast<T>(std::ldexp(1.0, -far));
      for (const T beta : {T(1), small, std::numeric_limits<T>::denorm_min()}) {
        const T negative = -small;
        EXPECT_EQ(exact_epilogue(tie, T(1), beta, &small), above) << far;
        EXPECT_EQ(exact_epilogue(tie, T(1), beta, &negative), below) << far;
      }
    }
    const T zero = 0;
    EXPECT_EQ(exact_epilogue(tie, T(1), T(1), &zero), last == 0 ? below : above);
  }
}

TYPED_TEST(ExactRounding, SpecialScalarsFollowIeee754) {
  using T = TypeParam;
  const T infinity = std::numeric_limits<T>::infinity();
  const ExactNumber<6> three{{{3}}, 0, false};
  const T old = 2;
  EXPECT_EQ(exact_epilogue(three, infinity, T(1), &old), infinity);
  EXPECT_TRUE(std::isnan(exact_epilogue(three, infinity, -infinity, &old)));
  EXPECT_EQ(exact_epilogue(three, T(1), T(1), &infinity), infinity);
  EXPECT_TRUE(std::isnan(exact_epilogue<T>(three, std::numeric_limits<T>::quiet_NaN(), 0, nullptr)));
}

// Terms are near each other, far apart, or cancel; the reference accumulates all exponents exactly.
TYPED_TEST(ExactRounding, SeveralTermsEqualTheSuperaccumulators) {
  using T = TypeParam;
  std::mt19937_64 random(5);
  for (int draw = 0; draw < 40000; ++draw) {
    const int spread = draw % 3 == 0 ? 900 : draw % 3 == 1 ? 150 : 5;
    std::array<ExactNumber<6>, 4> terms;
    for (auto& term : terms) {
      term = draw_number(random, static_cast<int>(random() % static_cast<unsigned>(2 * spread + 1)) - spread);
      if (random() % 8 == 0) term.magnitude = {};
    }
    if (draw % 2 == 0) terms[2] = {terms[0].magnitude, terms[0].exponent, !terms[0].negative};
    if (draw % 4 == 0) terms[3].exponent = terms[1].exponent - static_cast<int>(random() % 600);
    if (draw % 8 == 0) terms[2].magnitude.limb[0] ^= 1;
    ExactSum sum;
    for (const auto& term : terms) {
      for (int l = 0; l < 6; ++l)
        sum.add_integer(term.magnitude.limb[l], term.exponent + 64 * l, term.negative);
    }
    ASSERT_EQ(rounded_sum<T>(terms), rounded<T>(sum)) << draw;
  }
}

// Complex scalars with imaginary parts: both parts of an element, special values included.
TYPED_TEST(ExactRounding, ComplexElementsEqualTheSuperaccumulators) {
  using T = TypeParam;
  using limits = std::numeric_limits<T>;
  std::mt19937_64 random(6);
  const auto number = [&] {
    const T values[] = {0,
                        1,
                        -1,
                        limits::infinity(),
                        -limits::infinity(),
                        limits::quiet_NaN(),
                        limits::max(),
                        limits::denorm_min()};
    if (random() % 6 == 0) return values[random() % std::size(values)];
    const double fraction = 1 + std::ldexp(static_cast<double>(random() >> 12), -52);
    return static_cast<T>(
        std::ldexp(random() % 2 == 0 ? fraction : -fraction, static_cast<int>(random() % 60) - 30));
  };
  const auto superaccumulator = [](const ExactNumber<6>& x) {
    ExactSum sum;
    for (int l = 0; l < 6; ++l) sum.add_integer(x.magnitude.limb[l], x.exponent + 64 * l, x.negative);
    return sum;
  };
  const auto same = [](T x, T y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  for (int draw = 0; draw < 40000; ++draw) {
    ExactNumber<6> x = draw_number(random, static_cast<int>(random() % 100) - 50);
    const ExactNumber<6> y = draw_number(random, static_cast<int>(random() % 100) - 50);
    if (draw % 9 == 0) x = {};
    const std::complex<T> alpha(number(), number()), beta(number(), number()), c(number(), number());
    const std::complex<T>* old = draw % 3 == 0 ? nullptr : &c;
    if (old == nullptr && alpha.imag() == T(0)) continue;
    const std::complex<T> used = old == nullptr ? std::complex<T>() : beta;
    if (alpha.imag() == T(0) && used.imag() == T(0)) continue;
    const auto expected = exact_epilogue(superaccumulator(x), superaccumulator(y), alpha, used, old);
    const auto result = exact_epilogue(x, y, alpha, used, old);
    ASSERT_TRUE(same(result.real(), expected.real()) && same(result.imag(), expected.imag()))
        << draw << ": " << result << " instead of " << expected << "; alpha " << alpha << ", beta " << used
        << ", c " << c;
  }
}

}  // namespace
}  // namespace kintsugi::core
