// Tests where native complex products have NaN and infinities, part by part: as real sums of products have
// them, whatever the vendor library gives.
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

template <class T>
class NativeSpecials : public testing::Test {};
using Parts = testing::Types<float, double>;
TYPED_TEST_SUITE(NativeSpecials, Parts);

TYPED_TEST(NativeSpecials, AnInfinitePartStaysInfinite) {
  using Element = std::complex<TypeParam>;
  for (const std::string engine : {"reference", "cpu"}) {
    if (engine == "cpu" && !has_cpu_engine()) continue;
    GemmDataOf<Element> data(GemmCase{.engine = engine});
    data.a()(0, 0) = {static_cast<TypeParam>(infinity), 1};
    data.b()(0, 0) = {2, 3};
    data.run_well();
    EXPECT_EQ(data.c()(0, 0), Element(static_cast<TypeParam>(infinity), static_cast<TypeParam>(infinity)))
        << engine;
  }
}

GemmCase draw_case(std::mt19937& random, int trial) {
  const double scalars[] = {1, 1, -1, 0, 0.5, -3};
  GemmCase test{.m = draw(random, 9), .n = draw(random, 9), .k = draw(random, 20)};
  test.engine = trial % 2 == 0 || !has_cpu_engine() ? "reference" : "cpu";
  test.policy = trial % 3 == 0 ? "native" : "auto";
  test.op_a = ops[random() % 3];
  test.op_b = ops[random() % 3];
  test.layout = layouts[random() % 2];
  test.distribution = "integer:9";
  test.seed = random();
  test.alpha = scalars[random() % 6];
  test.alpha_im = scalars[random() % 6];
  if (test.alpha == 0 && test.alpha_im == 0) test.alpha = 1;
  test.beta = scalars[random() % 6];
  test.beta_im = random() % 2 == 0 ? 0 : scalars[random() % 6];
  return test;
}

// Makes one part of `count` elements infinite, NaN or zero.
template <class T>
void spoil(std::mt19937& random, const MatrixView<std::complex<T>>& view, int count) {
  const double specials[] = {infinity, -infinity, std::numeric_limits<double>::quiet_NaN(), 0};
  for (int s = 0; s < count; ++s) {
    std::complex<T>& element = view(static_cast<std::int64_t>(random()) % view.rows,
                                    static_cast<std::int64_t>(random()) % view.columns);
    const auto value = static_cast<T>(specials[random() % 4]);
    element =
        random() % 2 == 0 ? std::complex<T>(value, element.imag()) : std::complex<T>(element.real(), value);
  }
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

TYPED_TEST(NativeSpecials, AreThoseOfSumsOfRealProducts) {
  using Element = std::complex<TypeParam>;
  std::mt19937 random(19);
  int seen = 0;
  for (int trial = 0; trial < (thorough ? 400 : 40); ++trial) {
    const GemmCase test = draw_case(random, trial);
    GemmDataOf<Element> data(test);
    spoil(random, data.a(), trial % 4);
    spoil(random, data.b(), trial % 3);
    if (data.beta() != Element()) spoil(random, data.c(), trial % 5 == 0 ? 2 : 0);
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
      seen += std::isfinite(c.real()) && std::isfinite(c.imag()) ? 0 : 1;
    }
  }
  EXPECT_GT(seen, thorough ? 1000 : 100);
}

}  // namespace
}  // namespace kintsugi::test
