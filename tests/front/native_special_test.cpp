// Tests NaN and infinities of native products, which are as the vendor library treats them: they may spoil
// the elements whose sums have them, and no others. Also where emulated complex products have them, part by
// part, as real sums of products have them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/support/c_objects.hpp"
#include "tests/support/complex_reference.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/number_kind.hpp"
#include "tests/verification/special_oracle.hpp"

namespace kintsugi::test {
namespace {

template <class T>
bool is_finite(const T& x) {
  if constexpr (core::is_complex<T>) {
    return std::isfinite(x.real()) && std::isfinite(x.imag());
  } else {
    return std::isfinite(x);
  }
}

// Makes a number, or one part of a complex one, NaN or infinite.
template <class T>
void spoil(std::mt19937& random, T& x) {
  const double specials[] = {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()};
  const auto value = static_cast<core::RealOf<T>>(specials[random() % 3]);
  if constexpr (core::is_complex<T>) {
    x = random() % 2 == 0 ? T(value, x.imag()) : T(x.real(), value);
  } else {
    x = value;
  }
}

template <class T>
GemmCase draw_case(std::mt19937& random, int trial) {
  constexpr bool is_complex = core::is_complex<T>;
  const double scalars[] = {1, 1, -1, 0.5, -3};
  GemmCase test{.m = draw(random, 20), .n = draw(random, 20), .k = draw(random, 40)};
  test.engine = trial % 2 == 0 || !has_cpu_engine() ? "reference" : "cpu";
  test.op_a = ops[random() % (is_complex ? 3 : 2)];
  test.op_b = ops[random() % (is_complex ? 3 : 2)];
  test.layout = layouts[random() % 2];
  test.seed = random();
  test.alpha = scalars[random() % 5];
  test.beta = random() % 2 == 0 ? 0 : scalars[random() % 5];
  if (is_complex && random() % 2 == 0) test.alpha_im = scalars[random() % 5];
  if (is_complex && random() % 2 == 0 && test.beta != 0) test.beta_im = scalars[random() % 5];
  return test;
}

template <class T>
class NativeSpecials : public testing::Test {};
using Elements = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(NativeSpecials, Elements);

TYPED_TEST(NativeSpecials, SpoilTheirRowsAndColumnsAlone) {
  using T = TypeParam;
  std::mt19937 random(19);
  std::int64_t spoiled = 0, clean = 0;
  for (int trial = 0; trial < (thorough ? 400 : 60); ++trial) {
    GemmCase test = draw_case<T>(random, trial);
    test.policy = "native";
    GemmDataOf<T> data(test), without(test);
    const std::int64_t i = draw(random, test.m) - 1, j = draw(random, test.n) - 1;
    const bool in_a = trial % 3 != 0, in_b = trial % 3 != 1, in_c = trial % 4 == 0 && test.beta != 0;
    if (in_a) spoil(random, data.a()(i, draw(random, test.k) - 1));
    if (in_b) spoil(random, data.b()(draw(random, test.k) - 1, j));
    const std::int64_t old_i = draw(random, test.m) - 1, old_j = draw(random, test.n) - 1;
    if (in_c) spoil(random, data.c()(old_i, old_j));
    data.run_well();
    without.run_well();
    for (std::int64_t column = 0; column < test.n; ++column) {
      for (std::int64_t row = 0; row < test.m; ++row) {
        const bool is_special =
            (in_a && row == i) || (in_b && column == j) || (in_c && row == old_i && column == old_j);
        const T c = data.c()(row, column);
        ++(is_special ? spoiled : clean);
        if (is_special) {
          ASSERT_FALSE(is_finite(c)) << "trial " << trial << " " << test.engine << ": " << c;
        } else {
          ASSERT_EQ(c, without.c()(row, column)) << "trial " << trial << " " << test.engine;
        }
      }
    }
  }
  EXPECT_GT(spoiled, 500);
  EXPECT_GT(clean, 1000);
}

// alpha and beta are no less the vendor's, except that alpha = 0 reads no operand and beta = 0 no C.
TYPED_TEST(NativeSpecials, AreNotReadForScalarsOfZero) {
  using T = TypeParam;
  for (const std::string engine : {"reference", "cpu"}) {
    if (engine == "cpu" && !has_cpu_engine()) continue;
    for (const std::int64_t n : {1, 5}) {
      std::mt19937 random(7);
      GemmCase test{.m = 4, .n = n, .k = 6, .alpha = 0, .beta = 2, .engine = engine, .policy = "native"};
      GemmDataOf<T> scaled(test);
      spoil(random, scaled.a()(1, 2));
      spoil(random, scaled.b()(3, 0));
      const auto before = scaled.result();
      scaled.run_well();
      for (std::size_t e = 0; e < before.size(); ++e) EXPECT_EQ(scaled.result()[e], T(2) * before[e]);
      test.alpha = 0.5;
      test.beta = 0;
      GemmDataOf<T> unread(test);  // C is poisoned with NaN
      unread.run_well();
      for (const T& x : unread.result()) EXPECT_TRUE(is_finite(x)) << engine;
    }
  }
}

// ---------------------------------------------------------------- emulated complex products

// The classes that each part of factor * z may have; without an imaginary part a factor scales both parts.
std::pair<Classes, Classes> times_parts(std::complex<double> factor, std::pair<Classes, Classes> z) {
  const auto scaled = [](Classes x, double by) {
    if (by != 0) return times(x, by);
    return (x & finite) | ((x & ~finite) != 0 ? a_nan : 0);
  };
  if (factor.imag() == 0) return {scaled(z.first, factor.real()), scaled(z.second, factor.real())};
  return {add(scaled(z.first, factor.real()), scaled(z.second, -factor.imag())),
          add(scaled(z.second, factor.real()), scaled(z.first, factor.imag()))};
}

// The classes that the parts of C(i, j) may have. `real` has the real products of the complex one.
template <class T>
std::pair<Classes, Classes> expected_classes(GemmDataOf<std::complex<T>>& data, GemmDataOf<T>& real,
                                             std::complex<T> old, std::int64_t i, std::int64_t j) {
  const auto a = real.a();
  const auto b = real.b();
  const auto products =
      times_parts(std::complex<double>(data.alpha()),
                  {class_of_product(a, b, i, 2 * j, false), class_of_product(a, b, i, 2 * j + 1, false)});
  if (data.beta() == std::complex<T>()) return products;
  const auto added =
      times_parts(std::complex<double>(data.beta()), {class_of(old.real()), class_of(old.imag())});
  return {add(products.first, added.first), add(products.second, added.second)};
}

template <class T>
class EmulatedSpecials : public testing::Test {};
using Parts = testing::Types<float, double>;
TYPED_TEST_SUITE(EmulatedSpecials, Parts);

TYPED_TEST(EmulatedSpecials, AreThoseOfSumsOfRealProducts) {
  using Element = std::complex<TypeParam>;
  std::mt19937 random(19);
  int seen = 0;
  for (int trial = 0; trial < (thorough ? 400 : 60); ++trial) {
    GemmCase test = draw_case<Element>(random, trial);
    test.scheme = "ozaki2";
    test.distribution = "integer:9";
    GemmDataOf<Element> data(test);
    for (int s = trial % 4; s > 0; --s)
      spoil(random, data.a()(draw(random, test.m) - 1, draw(random, test.k) - 1));
    for (int s = trial % 3; s > 0; --s)
      spoil(random, data.b()(draw(random, test.k) - 1, draw(random, test.n) - 1));
    if (data.beta() != Element() && trial % 5 == 0) spoil(random, data.c()(0, 0));
    const auto before = data.result();
    auto real = embedded(data);
    data.run_well();
    for (std::int64_t e = 0; e < test.m * test.n; ++e) {
      const std::int64_t i = e % test.m, j = e / test.m;
      const auto expected = expected_classes(data, real, before[static_cast<std::size_t>(e)], i, j);
      const Element c = data.c()(i, j);
      ASSERT_TRUE((class_of(c.real()) & expected.first) != 0 && (class_of(c.imag()) & expected.second) != 0)
          << "trial " << trial << " " << test.engine << ": " << c << " alpha " << data.alpha() << " beta "
          << data.beta();
      seen += is_finite(c) ? 0 : 1;
    }
  }
  EXPECT_GT(seen, 500);
}

}  // namespace
}  // namespace kintsugi::test
