// Laws of bf16x6-direct: an element of C depends on its own row of A and column of B alone, and zeros
// appended to k change nothing. Typical operands are accepted without an exception.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/gemm_case.hpp"

namespace kintsugi::test {
namespace {

using Random = std::mt19937;

std::int64_t below(Random& random, std::int64_t count) {
  return static_cast<std::int64_t>(random() % static_cast<unsigned long>(count));
}

GemmCase case_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m, .n = n, .k = k, .scheme = "bf16x6-direct", .engine = "reference"};
}

// The same product in another form: layout, transposes, leading dimensions, batch, memory, threads.
GemmCase in_another_form(Random& random, GemmCase test) {
  constexpr std::array ops{KINTSUGI_OP_N, KINTSUGI_OP_T, KINTSUGI_OP_C};
  test.layout = random() % 2 == 0 ? KINTSUGI_ROW_MAJOR : KINTSUGI_COLUMN_MAJOR;
  test.op_a = ops[random() % 3];
  test.op_b = ops[random() % 3];
  test.pad_a = below(random, 4);
  test.pad_b = below(random, 4);
  test.pad_c = below(random, 4);
  test.batch = 1 + below(random, 3);
  test.threads = 1 + static_cast<int>(below(random, 3));
  return test;
}

// Runs the product of some rows and columns of a product, in another form and with zeros appended to k, and
// expects their bits. Other batch items have other operands.
void expect_part_has_bits(Random& random, GemmData& whole, const std::vector<std::int64_t>& rows,
                          const std::vector<std::int64_t>& columns, std::int64_t appended) {
  const GemmCase& test = whole.test();
  GemmCase part = test;
  part.m = static_cast<std::int64_t>(rows.size());
  part.n = static_cast<std::int64_t>(columns.size());
  part.k = test.k + appended;
  part.seed = test.seed + 1;
  GemmData data(in_another_form(random, part));
  const std::int64_t item = data.test().batch - 1;
  for (std::int64_t p = 0; p < part.k; ++p) {
    for (std::int64_t i = 0; i < part.m; ++i) data.a(item)(i, p) = p < test.k ? whole.a()(rows[i], p) : 0;
    for (std::int64_t j = 0; j < part.n; ++j) data.b(item)(p, j) = p < test.k ? whole.b()(p, columns[j]) : 0;
  }
  for (std::int64_t j = 0; j < part.n; ++j) {
    for (std::int64_t i = 0; i < part.m; ++i) {
      if (test.beta != 0) data.c(item)(i, j) = 1;
    }
  }
  data.run_well();
  for (std::int64_t j = 0; j < part.n; ++j) {
    for (std::int64_t i = 0; i < part.m; ++i) {
      const float x = data.c(item)(i, j);
      const float y = whole.c()(rows[i], columns[j]);
      ASSERT_TRUE(std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) ||
                  (std::isnan(x) && std::isnan(y)))
          << test.distribution << " " << test.m << " x " << test.n << " x " << test.k << " + " << appended
          << ": element " << rows[i] << ", " << columns[j] << " is " << x << ", in the whole product " << y;
    }
  }
}

TEST(DirectLaws, ElementsDependOnTheirOwnRowAndColumn) {
  Random random(1);
  const int draws = thorough ? 100 : 10;
  for (int draw = 0; draw < draws; ++draw) {
    constexpr std::array distributions{"uniform",      "phi:2",           "phi:8",    "span:60",
                                       "special:0.01", "subnormal-mixed", "offset:60"};
    GemmCase test =
        case_of(1 + below(random, 70), 1 + below(random, 70), 1 + below(random, draw % 10 == 0 ? 2000 : 200));
    test.distribution = distributions[random() % distributions.size()];
    test.alpha = random() % 2 == 0 ? 1 : -0.7;
    test.beta = random() % 2 == 0 ? 0 : 0.3;
    test.seed = random();
    GemmData whole(test);
    if (test.beta != 0) {
      for (std::int64_t j = 0; j < test.n; ++j) {
        for (std::int64_t i = 0; i < test.m; ++i) whole.c()(i, j) = 1;
      }
    }
    whole.run_well();
    const auto some = [&](std::int64_t count) {
      std::vector<std::int64_t> chosen(static_cast<std::size_t>(1 + below(random, 40)));
      for (auto& index : chosen) index = below(random, count);
      return chosen;
    };
    expect_part_has_bits(random, whole, some(test.m), some(test.n),
                         draw % 2 == 0 ? 0 : below(random, draw % 7 == 0 ? 9000 : 500));
    if (HasFatalFailure()) return;
  }
}

std::int64_t recomputed(GemmData& data) {
  const Handle handle;
  data.run_well(handle);
  return handle.report().at("recomputed_elements").get<std::int64_t>();
}

std::int64_t recomputed(GemmCase test, const std::string& distribution) {
  test.distribution = distribution;
  GemmData data(test);
  return recomputed(data);
}

TEST(DirectAcceptance, TypicalOperandsAreAccepted) {
  Random random(2);
  for (const std::int64_t k : a_part_of<std::int64_t>({64, 1, 13, 300, 1100})) {
    const GemmCase test = case_of(120, 100, k);
    for (const char* distribution :
         {"uniform", "uniform01", "normal", "phi:1", "phi:2", "phi:4", "phi:8", "graded-inner:25"})
      EXPECT_EQ(recomputed(test, distribution), 0) << distribution << ", k = " << k;
    GemmData half_zeros(test);
    for (std::int64_t p = 0; p < k; ++p) {
      for (std::int64_t i = 0; i < test.m; ++i) half_zeros.a()(i, p) *= static_cast<float>(random() % 2);
      for (std::int64_t j = 0; j < test.n; ++j) half_zeros.b()(p, j) *= static_cast<float>(random() % 2);
    }
    EXPECT_EQ(recomputed(half_zeros), 0) << k;
  }
}

// Sums beyond FP32's range, and elements far below others, whose slices are not exact.
TEST(DirectAcceptance, OthersAreComputedInFp32) {
  GemmCase test = case_of(2, 2, 3);
  test.accumulator = "h200";
  GemmData data(test);
  for (std::int64_t p = 0; p < 3; ++p) {
    data.a()(0, p) = 0x1.7p-120F;
    data.a()(1, p) = p == 2 ? -0x1p120F : 0x1p120F;
    data.b()(p, 0) = p == 0 ? 0x1p10F : 0;
    data.b()(p, 1) = p == 1 ? 0.5F : 0x1p20F;
  }
  EXPECT_EQ(recomputed(data), 3);
  EXPECT_EQ(data.c()(0, 0), 0x1.7p-110F);
  EXPECT_TRUE(std::isinf(data.c()(1, 0)));
  EXPECT_EQ(data.c()(1, 1), 0x1p119F);  // the unit's sum does not overflow
}

}  // namespace
}  // namespace kintsugi::test
