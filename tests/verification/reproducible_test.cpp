// Tests of the accuracy `reproducible`: the same bits by words of 52 bits and by residues, on every engine of
// the host, with any threads (integer_bits_test.cpp: with any workspace); those of the grid's definition
// where exponents prove it, and else the correctly rounded ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::test {
namespace {

struct GridRoute {
  std::string scheme, engine;
  int threads = 1;
};

const std::vector<GridRoute> grid_routes{{"int52", "cpu"},        {"ozaki2", "cpu", 2},
                                         {"", "cpu", 3},          {"", "reference", 2},
                                         {"ozaki2", "reference"}, {"int52", "reference"}};

template <class T>
std::vector<T> product_by(GemmCase test, const GridRoute& route, std::int64_t limit = 0) {
  test.scheme = route.scheme;
  test.engine = route.engine;
  test.threads = route.threads;
  test.workspace_limit = limit;
  GemmDataOf<T> data(test);
  data.run_well();
  return data.result();
}

// A random case; k decides whether uniform operands are accepted by their depth.
GemmCase random_product(std::mt19937& random) {
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  static const std::vector<std::string> distributions{
      "uniform", "integer:127", "span:3", "span:20", "span:1000", "phi:1", "normal", "subnormal-mixed"};
  GemmCase test{.m = 1 + below(20), .n = 1 + below(20), .k = 1 + below(300)};
  test.op_a = static_cast<kintsugi_op>(below(3));
  test.op_b = static_cast<kintsugi_op>(below(3));
  test.layout = static_cast<kintsugi_layout>(below(2));
  test.pad_a = below(3);
  test.batch = 1 + below(2);
  test.alpha = below(2) == 0 ? 1 : -0.7;
  test.beta = below(2) == 0 ? 0 : 1.3;
  test.distribution = distributions[static_cast<std::size_t>(below(static_cast<int>(distributions.size())))];
  test.seed = random();
  test.accuracy = "reproducible";
  return test;
}

template <class T>
class Reproducible : public testing::Test {};
using ReproducibleTypes =
    testing::Types<float, double, std::complex<float>, std::complex<double>, core::DoubleDouble>;
TYPED_TEST_SUITE(Reproducible, ReproducibleTypes);

TYPED_TEST(Reproducible, HasTheSameBitsOnEveryRoute) {
  std::mt19937 random(33);
  for (int round = 0; round < (thorough ? 200 : 5); ++round) {
    GemmCase test = random_product(random);
    if (test.distribution == "span:1000" && std::is_same_v<core::RealOf<TypeParam>, float>)
      test.distribution = "span:120";
    const auto expected = bits_of(product_by<TypeParam>(test, {"", "reference"}));
    for (const GridRoute& route : grid_routes) {
      if (core::is_double_double<TypeParam> && !route.scheme.empty()) continue;
      EXPECT_EQ(bits_of(product_by<TypeParam>(test, route)), expected)
          << test.distribution << " " << test.m << " x " << test.n << " x " << test.k << " by "
          << route.scheme << " on " << route.engine;
    }
  }
}

__extension__ using Wide = __int128;

// Scale of a vector, whose elements times 2^scale are rounded to the nearest integers.
int grid_scale(const std::vector<double>& vector) {
  int raised = -2000;
  for (const double x : vector) {
    if (x == 0) continue;
    const int exponent = std::ilogb(x);
    raised = std::max(raised, exponent + (std::abs(x) >= std::ldexp(2 - 0x1p-6, exponent) ? 1 : 0));
  }
  return 50 - raised;
}

TEST(ReproducibleGrid, IsThatOfItsDefinitionWhereExponentsProveIt) {
  GemmCase test{.m = 17, .n = 19, .k = 700, .accuracy = "reproducible"};
  for (const GridRoute& route : grid_routes) {
    GemmCase routed = test;
    routed.scheme = route.scheme;
    routed.engine = route.engine;
    GemmDataOf<double> data(routed);
    const auto a = data.a(0);
    const auto b = data.b(0);
    data.run_well();
    for (std::int64_t i = 0; i < test.m; ++i) {
      for (std::int64_t j = 0; j < test.n; ++j) {
        std::vector<double> row, column;
        for (std::int64_t p = 0; p < test.k; ++p) {
          row.push_back(a(i, p));
          column.push_back(b(p, j));
        }
        const int scale_a = grid_scale(row), scale_b = grid_scale(column);
        Wide sum = 0;
        for (std::size_t p = 0; p < row.size(); ++p) {
          const auto x = static_cast<std::int64_t>(std::nearbyint(std::ldexp(row[p], scale_a)));
          const auto y = static_cast<std::int64_t>(std::nearbyint(std::ldexp(column[p], scale_b)));
          sum += Wide{x} * y;
        }
        EXPECT_EQ(data.c(0)(i, j), std::ldexp(static_cast<double>(sum), -scale_a - scale_b));
      }
    }
  }
}

TEST(ReproducibleGrid, GivesWayToCorrectRoundingForWideRanges) {
  GemmCase test{.m = 17, .n = 19, .k = 70, .distribution = "span:200", .accuracy = "reproducible"};
  GemmCase exact = test;
  exact.accuracy = "exact";
  for (const GridRoute& route : grid_routes)
    EXPECT_EQ(bits_of(product_by<double>(test, route)), bits_of(product_by<double>(exact, {"", "cpu"})));
  // On the grid of narrow operands results differ from the correctly rounded ones.
  test.distribution = exact.distribution = "uniform";
  test.k = exact.k = 700;
  EXPECT_NE(bits_of(product_by<double>(test, grid_routes[0])),
            bits_of(product_by<double>(exact, {"", "cpu"})));
}

// Operands of which some rows and columns have wide dynamic ranges, and products of parts of them.
template <class T>
struct MixedOperands {
  static constexpr std::int64_t m = 150, n = 29, k = 270;
  std::vector<T> a = std::vector<T>(m * k), b = std::vector<T>(k * n), c = std::vector<T>(m * n);

  MixedOperands() {
    std::mt19937 random(3);
    const auto draw = [&](std::int64_t vector, int every) {
      const int binades = vector % every == 0 ? 60 : 1;
      const auto real = [&] {
        const int exponent = -static_cast<int>(random() % static_cast<unsigned>(binades));
        const double significand =
            0.5 + static_cast<double>(random()) * 0x1p-33 + static_cast<double>(random()) * 0x1p-53;
        return std::ldexp(significand, exponent) * (random() % 2 == 0 ? 1 : -1);
      };
      const double re = real();
      return scalar_of<T>(re, core::is_complex<T> ? real() : 0);
    };
    for (std::int64_t p = 0; p < k; ++p)
      for (std::int64_t i = 0; i < m; ++i) a[i + p * m] = draw(i, 9);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t p = 0; p < k; ++p) b[p + j * k] = draw(j, 7);
    for (T& element : c) element = draw(1, 2);
  }

  // Updates rows first ... first + rows - 1 and the same of columns in `result`, which has the size of C.
  void multiply(std::int64_t first_row, std::int64_t rows, std::int64_t first_column, std::int64_t columns,
                const char* accuracy, std::int64_t limit, std::vector<T>& result) const {
    kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
    problem.m = rows, problem.n = columns, problem.k = k;
    problem.lda = problem.ldc = m, problem.ldb = k;
    problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = type_of<T>();
    kintsugi_options options = KINTSUGI_OPTIONS_INIT;
    options.accuracy = accuracy;
    options.policy = "emulate";
    options.engine = "cpu";
    options.workspace_limit = limit;
    const T alpha = scalar_of<T>(-0.7, 0), beta = scalar_of<T>(1.3, 0);
    kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
    operands.alpha = &alpha, operands.beta = &beta;
    operands.a = a.data() + first_row, operands.b = b.data() + first_column * k;
    operands.c = result.data() + first_row + first_column * m;
    ASSERT_EQ(kintsugi_gemm(nullptr, &problem, &options, &operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
  }
};

template <class T>
void test_parts_of_mixed_operands() {
  using Operands = MixedOperands<T>;
  const Operands operands;
  std::vector<T> whole = operands.c, blocked = operands.c, in_parts = operands.c, exact = operands.c;
  operands.multiply(0, Operands::m, 0, Operands::n, "reproducible", 0, whole);
  operands.multiply(0, Operands::m, 0, Operands::n, "reproducible", core::is_complex<T> ? 7 << 20 : 4 << 20,
                    blocked);
  operands.multiply(0, Operands::m, 0, Operands::n, "exact", 0, exact);
  for (std::int64_t i = 0; i < Operands::m; i += 50) {
    for (std::int64_t j = 0; j < Operands::n; j += 15)
      operands.multiply(i, 50, j, std::min<std::int64_t>(15, Operands::n - j), "reproducible", 0, in_parts);
  }
  EXPECT_EQ(bits_of(in_parts), bits_of(whole));
  EXPECT_EQ(bits_of(blocked), bits_of(whole));
  int differing = 0;
  for (std::int64_t j = 0; j < Operands::n; ++j) {
    for (std::int64_t i = 0; i < Operands::m; ++i) {
      const auto at = static_cast<std::size_t>(i + j * Operands::m);
      if (whole[at] == exact[at]) continue;
      ++differing;
      EXPECT_TRUE(i % 9 != 0 && j % 7 != 0) << "element " << i << ", " << j << " of a wide vector";
    }
  }
  EXPECT_GT(differing, 20);
}

TEST(ReproducibleGrid, AcceptsElementsByTheirOwnRowAndColumn) {
  test_parts_of_mixed_operands<double>();
  test_parts_of_mixed_operands<std::complex<double>>();
}

// Rows of A have one huge element at an even inner index and columns of B at an odd one, so that no number of
// moduli proves any element; only row 0 and column 0 are narrow, so that the grid computes one element.
TEST(ReproducibleGrid, LeavesWideProductsToTheSuperaccumulator) {
  constexpr std::int64_t m = 16, n = 65'536, k = 8, part = n / 4;
  constexpr double unwritten = 7;
  std::mt19937 random(7);
  std::vector<double> a(m * k), b(k * n), whole(m * n, unwritten), in_parts = whole, exact = whole;
  const auto fill = [&](double* vector, std::int64_t stride, bool is_narrow, int odd) {
    for (std::int64_t p = 0; p < k; ++p)
      vector[p * stride] = (0.5 + static_cast<double>(random()) * 0x1p-33) * (is_narrow ? 1 : 0x1p-300);
    if (!is_narrow) vector[(2 * (random() % (k / 2)) + odd) * stride] *= 0x1p600;
  };
  for (std::int64_t i = 0; i < m; ++i) fill(&a[i], m, i == 0, 0);
  for (std::int64_t j = 0; j < n; ++j) fill(&b[j * k], 1, j == 0, 1);
  const auto multiply = [&](const char* accuracy, std::int64_t first, std::int64_t columns, double* c) {
    kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
    problem.m = problem.lda = problem.ldc = m;
    problem.n = columns, problem.k = problem.ldb = k;
    problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = type_of<double>();
    kintsugi_options options = KINTSUGI_OPTIONS_INIT;
    options.accuracy = accuracy;
    options.engine = "cpu";
    const double alpha = 1, beta = 0;
    kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
    operands.alpha = &alpha, operands.beta = &beta;
    operands.a = a.data(), operands.b = b.data() + first * k, operands.c = c + first * m;
    ASSERT_EQ(kintsugi_gemm(nullptr, &problem, &options, &operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
  };
  multiply("reproducible", 0, n, whole.data());
  for (std::int64_t first = 0; first < n; first += part)
    multiply("reproducible", first, part, in_parts.data());
  multiply("exact", 0, n, exact.data());
  EXPECT_EQ(std::ranges::count(whole, unwritten), 0);
  EXPECT_EQ(bits_of(whole), bits_of(in_parts));
  exact[0] = whole[0];  // the element of the grid
  EXPECT_EQ(bits_of(whole), bits_of(exact));
}

TEST(ReproducibleGrid, RefusesWhatContradictsIt) {
  GemmCase test{.m = 3, .n = 4, .k = 5, .policy = "native", .accuracy = "reproducible"};
  EXPECT_EQ(GemmDataOf<double>(test).run(), KINTSUGI_CONTRACT_UNREACHABLE);
  test.policy = "";
  test.scheme = "ozaki-int8";
  EXPECT_EQ(GemmDataOf<double>(test).run(), KINTSUGI_CONTRACT_UNREACHABLE);
  EXPECT_NE(std::string(kintsugi_last_error()).find("int52 and ozaki2"), std::string::npos);
}

}  // namespace
}  // namespace kintsugi::test
