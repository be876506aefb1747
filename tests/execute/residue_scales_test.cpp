// Tests ozaki2 with scales by norms and by a product of magnitudes: error bound, bits and refused parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <tuple>

#include "engines/registry.hpp"
#include "schemes/program.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/scheme_bound.hpp"

namespace kintsugi::test {
namespace {

using testing::HasSubstr;

const std::vector<std::string> scales{"norm", "product"};

std::string named(int moduli, const std::string& scale) {
  return fmt::format("ozaki2:moduli={}:scale={}", moduli, scale);
}

// Checks every element against the bound of the scheme's smallest scales; a sum beyond M / 4, M the product
// of moduli, would give an arbitrary element.
template <class T>
void expect_within_bound(GemmDataOf<T>& data) {
  const core::Scheme& scheme = *core::find_scheme(data.test().scheme);
  data.run_well();
  const Allowance<T> allowance(scheme, *core::find_engine(data.test().engine), constant(data.a()),
                               constant(data.b()));
  for (const measure::ElementError& element : element_errors(data)) {
    ASSERT_LE(std::abs(element.error), allowance(element, data.test().alpha))
        << data.test().scheme << ", " << data.test().distribution << ", k " << data.test().k << " at "
        << element.i << ", " << element.j;
  }
}

TEST(ResidueScales, KeepTheBound) {
  for (const std::string& scale : scales) {
    for (const char* distribution :
         {"uniform", "uniform01", "phi:2", "phi:4", "span:30", "span:900", "subnormal-mixed", "graded:300",
          "crossed:40", "cancellation:60", "integer:127", "power-of-two:300"}) {
      for (const std::int64_t k : {1, 2, 63, 300}) {
        for (const int moduli : {4, 9, 16, 34, 49}) {
          if (!thorough && k >= 63 && moduli != 16) continue;
          GemmCase test{.m = 13,
                        .n = 11,
                        .k = k,
                        .distribution = distribution,
                        .scheme = named(moduli, scale),
                        .engine = "reference"};
          GemmDataOf<double> data(test);
          expect_within_bound(data);
        }
      }
    }
  }
}

// Sums come as close to M / 4 as scales allow, since for these rows and columns the Cauchy-Schwarz
// inequality, or the product of magnitudes, is nearly an equation.
TEST(ResidueScales, SumsThatReachTheLimitKeepTheBound) {
  const auto fill = [](int kind, std::int64_t p, bool right) {
    switch (kind) {
      case 0: return p == 3 ? 0x1.fffffffffffffp40 : 0;  // a single non-zero product
      case 1: return 0x1.fffffffffffffp-3;               // all elements equal
      case 2: return p % 2 == 0 ? 1.0 : -1.0;
      case 3: return (p == 3) != right ? 1.75 : std::ldexp(1.25, -70);  // large times small alone
      default: return p == 3 ? (right ? 0.0 : 1.5) : std::ldexp(1.0 + 0.001 * static_cast<double>(p), -9);
    }
  };
  for (const std::string& scale : scales) {
    for (int kind = 0; kind < 5; ++kind) {
      for (const std::int64_t k : {5, 129, 1000}) {
        for (int moduli = 5; moduli <= 49; moduli += thorough ? 1 : 22) {
          GemmDataOf<double> data({.m = 3, .n = 2, .k = k, .scheme = named(moduli, scale), .engine = "cpu"});
          for (std::int64_t p = 0; p < k; ++p) {
            for (std::int64_t i = 0; i < 3; ++i)
              data.a()(i, p) = std::ldexp(fill(kind, p, false), static_cast<int>(i));
            for (std::int64_t j = 0; j < 2; ++j) data.b()(p, j) = fill(kind, p, true);
          }
          SCOPED_TRACE(kind);
          expect_within_bound(data);
        }
      }
    }
  }
}

// Double-double elements whose high and low words are far apart, so that the high word alone is below the
// element, and whose integers are exact.
TEST(ResidueScales, PairsAreBoundedByBothWords) {
  const auto result = [](const std::string& scheme, int kind) {
    GemmDataOf<core::DoubleDouble> data({.m = 5, .n = 4, .k = 129, .scheme = scheme, .engine = "cpu"});
    for (std::int64_t p = 0; p < 129; ++p) {
      const double sign = kind == 2 && p % 2 != 0 ? -1 : 1;
      const double high = kind == 0 ? 1.0 : 1.9375;
      for (std::int64_t i = 0; i < 5; ++i)
        data.a()(i, p) = {sign * std::ldexp(high, static_cast<int>(i)), sign * 0x1p-56};
      for (std::int64_t j = 0; j < 4; ++j) data.b()(p, j) = {sign * high, sign * 0x1p-60};
    }
    data.run_well();
    return bits_of(data.result());
  };
  for (int kind = 0; kind < 3; ++kind) {
    const auto exact = result("superaccumulator", kind);
    for (const std::string& scale : scales) {
      EXPECT_EQ(result("ozaki2:scale=" + scale, kind), exact) << scale << ", kind " << kind;
      EXPECT_EQ(result(named(31, scale), kind), exact) << scale << ", kind " << kind;
    }
  }
}

// The scale rules exist for this: more bits from the same moduli where most elements are far below the
// maximum.
TEST(ResidueScales, NormsKeepMoreBitsThanExponents) {
  const auto largest_error = [](const std::string& scheme) {
    GemmDataOf<double> data(
        {.m = 20, .n = 20, .k = 1000, .distribution = "phi:2", .scheme = scheme, .engine = "cpu"});
    data.run_well();
    double largest = 0;
    for (const measure::ElementError& element : element_errors(data))
      largest = std::max(largest, std::abs(element.error) / element.absolute);
    return largest;
  };
  const double by_exponent = largest_error("ozaki2:moduli=13");
  EXPECT_LT(largest_error(named(13, "norm")), by_exponent / 4);
  EXPECT_LT(largest_error(named(13, "product")), by_exponent / 4);
}

template <class T>
std::vector<T> result_of(const GemmCase& test) {
  GemmDataOf<T> data(test);
  data.run_well();
  return data.result();
}

// A workspace limit changes the blocks of C.
TEST(ResidueScales, ComplexBitsDoNotDependOnEngineThreadsOrLimit) {
  for (const std::string& scale : scales) {
    GemmCase test{.m = 150,
                  .n = 140,
                  .k = 70,
                  .op_a = KINTSUGI_OP_C,
                  .distribution = "phi:2",
                  .scheme = named(15, scale),
                  .engine = "cpu"};
    test.threads = 1;
    const auto expected = bits_of(result_of<std::complex<double>>(test));
    for (const std::int64_t limit : {0, 12'000'000}) {
      test.workspace_limit = limit;
      test.threads = 3;
      EXPECT_EQ(bits_of(result_of<std::complex<double>>(test)), expected) << scale << ", limit " << limit;
    }
    test.engine = "reference";
    EXPECT_EQ(bits_of(result_of<std::complex<double>>(test)), expected) << scale;
  }
}

template <class T>
void expect_prepared_bits(const GemmCase& test) {
  GemmDataOf<T> data(test);
  data.run_well();
  const auto expected = bits_of(data.result());
  for (const int sides : {1, 2, 3}) {
    GemmDataOf<T> prepared(test);
    const PlanOf plan(prepared);
    ASSERT_EQ(plan.status, KINTSUGI_SUCCESS) << plan.error;
    auto operands = prepared.operands();
    const std::tuple<int, kintsugi_side, const void*, kintsugi_prepared*> prepared_sides[] = {
        {1, KINTSUGI_A, operands.a, &operands.prepared_a}, {2, KINTSUGI_B, operands.b, &operands.prepared_b}};
    for (const auto& [bit, side, source, kept] : prepared_sides) {
      if ((sides & bit) == 0) continue;
      ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, side, source, kept), KINTSUGI_SUCCESS)
          << kintsugi_last_error();
    }
    EXPECT_EQ(kintsugi_plan_execute(nullptr, plan.plan, &operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    EXPECT_EQ(bits_of(prepared.result()), expected) << test.scheme << test.accuracy << " " << sides;
    kintsugi_prepared_destroy(operands.prepared_a);
    kintsugi_prepared_destroy(operands.prepared_b);
  }
}

TEST(ResidueScales, PreparedOperandsChangeNoBits) {
  for (const std::string& scale : scales) {
    const GemmCase test{
        .m = 40, .n = 30, .k = 90, .distribution = "phi:2", .scheme = named(14, scale), .engine = "cpu"};
    expect_prepared_bits<double>(test);
    expect_prepared_bits<std::complex<double>>(test);
  }
  const GemmCase checked{.m = 40,
                         .n = 30,
                         .k = thorough ? 4000 : 300,
                         .distribution = "phi:1.5",
                         .engine = "cpu",
                         .policy = "emulate",
                         .accuracy = "exact"};
  expect_prepared_bits<double>(checked);
  expect_prepared_bits<std::complex<double>>(checked);
}

TEST(ResidueScales, ScalingPermutingAndPaddingAlongKChangeNoBits) {
  for (const std::string& scale : scales) {
    const GemmCase test{
        .m = 17, .n = 9, .k = 60, .distribution = "phi:1", .scheme = named(14, scale), .engine = "cpu"};
    GemmDataOf<double> data(test);
    data.run_well();
    GemmCase longer = test;
    longer.k = 75;
    GemmDataOf<double> transformed(longer);
    for (std::int64_t p = 0; p < 75; ++p) {
      for (std::int64_t i = 0; i < 17; ++i)
        transformed.a()(i, p) = p < 60 ? std::ldexp(data.a()(i, 59 - p), 30) : 0;
      for (std::int64_t j = 0; j < 9; ++j)
        transformed.b()(p, j) = p < 60 ? std::ldexp(data.b()(59 - p, j), -30) : 0;
    }
    transformed.run_well();
    EXPECT_EQ(bits_of(transformed.result()), bits_of(data.result())) << scale;
  }
}

// The report's `adapted` has the moduli of a checked run, if norms show that fewer than planned are enough.
TEST(CheckedModuli, AreFewerWhereNormsShowSmallSums) {
  const auto moduli_of = [](const char* distribution) {
    GemmDataOf<double> data({.m = 200,  // smaller products are summed exactly
                             .n = 200,
                             .k = 4000,
                             .distribution = distribution,
                             .engine = "cpu",
                             .policy = "emulate",
                             .accuracy = "exact"});
    const Handle handle;
    data.run_well(handle);
    const json adapted = handle.report().at("adapted");
    return adapted.is_null() ? 0 : adapted.at("split_a").at("slices").get<int>();
  };
  EXPECT_EQ(moduli_of("integer:1"), 0);  // all elements of a row are as large as its maximum
  if (core::find_engine("cpu")->relative_rate(core::FormatId::int8) < 1)
    GTEST_SKIP() << "exact sums take less time than residues on a CPU without fast int8 products";
  EXPECT_GT(moduli_of("phi:1.5"), 0);
}

TEST(ResidueScales, RefusesUnsupportedCombinations) {
  const auto error_of = [](const std::string& scheme) {
    return PlanOf(GemmDataOf<double>({.m = 2, .n = 2, .k = 4096, .scheme = scheme, .engine = "cpu"})).error;
  };
  EXPECT_THAT(error_of("ozaki2:scale=fast"), HasSubstr("scale=exponent, norm or product"));
  EXPECT_THAT(error_of("ozaki2:moduli=3:scale=product"), HasSubstr("keep 4 bits of sums of 4096 products"));
}

}  // namespace
}  // namespace kintsugi::test
