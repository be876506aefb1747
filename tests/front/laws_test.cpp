// Tests laws that every scheme keeps on every engine.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "engines/registry.hpp"
#include "schemes/program.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/gemm_case.hpp"
#include "tests/support/scheme_bound.hpp"

namespace kintsugi::test {
namespace {

struct SchemeOnEngine {
  std::string scheme;
  std::string engine;
};

std::vector<SchemeOnEngine> schemes_on_engines() {
  std::vector<SchemeOnEngine> all;
  for (const core::Engine* engine : core::all_engines()) {
    if (!engine->unavailable_reason().empty()) continue;
    for (const core::Scheme* scheme : core::all_schemes()) {
      if (!worth_the_time(scheme->name)) continue;
      all.push_back({std::string(scheme->name), std::string(engine->name())});
    }
  }
  return all;
}

class Laws : public testing::TestWithParam<SchemeOnEngine> {
 protected:
  GemmCase base(std::int64_t m, std::int64_t n, std::int64_t k) const {
    return {.m = m, .n = n, .k = k, .scheme = GetParam().scheme, .engine = GetParam().engine};
  }
  bool shares_exponents() const {
    return core::find_scheme(GetParam().scheme)->program.split_a.kind == core::SplitKind::tiles;
  }
  bool scaled() const {
    const core::SplitRule& rule = core::find_scheme(GetParam().scheme)->program.split_a;
    return rule.scale_vectors || rule.kind == core::SplitKind::direct_residuals;
  }
};

TEST_P(Laws, LayoutTransposesAndPaddingKeepTheBits) {
  std::vector<std::uint32_t> first;
  for (const auto layout : {KINTSUGI_COLUMN_MAJOR, KINTSUGI_ROW_MAJOR}) {
    for (const auto op_a : {KINTSUGI_OP_N, KINTSUGI_OP_T, KINTSUGI_OP_C}) {
      for (const auto op_b : {KINTSUGI_OP_N, KINTSUGI_OP_T, KINTSUGI_OP_C}) {
        GemmCase test = base(7, 5, 33);
        test.layout = layout;
        test.op_a = op_a;
        test.op_b = op_b;
        test.pad_a = op_a;
        test.pad_b = 2 * op_b + 1;
        test.pad_c = op_a + op_b;
        test.gap = 3 + op_a;
        GemmData data(test);
        data.run_well();
        const auto bits = bits_of(data.result());
        if (first.empty()) first = bits;
        EXPECT_EQ(bits, first) << layout << op_a << op_b;
      }
    }
  }
}

TEST_P(Laws, ThreadsBlockingAndBatchPositionKeepTheBits) {
  const core::Schedule& schedule = core::find_scheme(GetParam().scheme)->program.schedule;
  // The scratch of products that split operands themselves does not depend on the size of C.
  const bool in_blocks = !schedule.terms.empty() && !schedule.is_direct;
  GemmCase test = base(270, 150, thorough ? 70 : 5);
  test.threads = 1;
  GemmData unlimited(test);
  unlimited.run_well();
  const auto expected = bits_of(unlimited.result());
  for (const int threads : {2, 5}) {
    test.threads = threads;
    GemmData data(test);
    data.run_well();
    EXPECT_EQ(bits_of(data.result()), expected) << threads << " threads";
  }
  test.threads = 1;
  kintsugi_plan plan = nullptr;
  std::size_t full = 0;
  const auto problem = unlimited.problem();
  const auto options = unlimited.options();
  ASSERT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &plan), KINTSUGI_SUCCESS);
  kintsugi_plan_workspace_size(plan, &full);
  kintsugi_plan_destroy(plan);
  int runs_with_limit = 0;
  for (std::size_t limit = full; limit > 0; limit = limit * 3 / 4) {
    test.workspace_limit = static_cast<std::int64_t>(limit);
    GemmData data(test);
    if (data.run() != KINTSUGI_SUCCESS) break;
    EXPECT_EQ(bits_of(data.result()), expected) << "limit " << limit;
    ++runs_with_limit;
  }
  EXPECT_GE(runs_with_limit, in_blocks ? 2 : 1);
  test.workspace_limit = 0;
  test.batch = 3;
  test.seed -= 2;  // item t uses seed + t: the last item is the case above
  GemmData batch(test);
  batch.run_well();
  const auto all = bits_of(batch.result());
  EXPECT_TRUE(
      std::equal(expected.begin(), expected.end(), all.end() - static_cast<std::ptrdiff_t>(expected.size())));
}

TEST_P(Laws, SmallIntegersAreExact) {
  for (const std::int64_t k : {1, 7, 64, 129, 500}) {
    GemmCase test = base(9, 6, k);
    test.distribution = "integer:30";
    GemmData data(test);
    data.run_well();
    for (const auto& element : element_errors(data)) ASSERT_EQ(element.error, 0) << "k = " << k;
  }
}

TEST_P(Laws, PowersOfTwoCommuteBitForBit) {
  if (!scaled()) GTEST_SKIP() << "an unscaled split has a fixed window";
  GemmCase test = base(8, 9, 100);
  test.distribution = "phi:1";
  GemmData plain(test);
  plain.run_well();
  GemmData scaled(test);
  // Rows or columns that share a tile's exponent get the same power of two.
  const auto row = [&](std::int64_t i) { return static_cast<int>(shares_exponents() ? 7 : 3 * i - 11); };
  const auto column = [&](std::int64_t j) {
    return static_cast<int>(shares_exponents() ? 20 - 9 * (j / 8) : 20 - 4 * j);
  };
  for (std::int64_t i = 0; i < 8; ++i) {
    for (std::int64_t p = 0; p < 100; ++p) scaled.a()(i, p) = std::ldexp(scaled.a()(i, p), row(i));
  }
  for (std::int64_t j = 0; j < 9; ++j) {
    for (std::int64_t p = 0; p < 100; ++p) scaled.b()(p, j) = std::ldexp(scaled.b()(p, j), column(j));
  }
  scaled.run_well();
  for (std::int64_t i = 0; i < 8; ++i) {
    for (std::int64_t j = 0; j < 9; ++j)
      EXPECT_EQ(scaled.c()(i, j), std::ldexp(plain.c()(i, j), row(i) + column(j)));
  }
}

std::vector<std::int64_t> permutation(std::int64_t size, unsigned seed) {
  std::vector<std::int64_t> elements(static_cast<std::size_t>(size));
  std::iota(elements.begin(), elements.end(), 0);
  std::mt19937 random(seed);
  std::shuffle(elements.begin(), elements.end(), random);
  return elements;
}

TEST_P(Laws, PermutationsOfRowsAndColumnsCommuteBitForBit) {
  const std::int64_t m = thorough ? 150 : 30, n = thorough ? 140 : 40, k = 40;
  GemmData plain(base(m, n, k));
  plain.run_well();
  const auto rows = permutation(m, 4);
  const auto columns = permutation(n, 3);
  GemmData permuted(base(m, n, k));
  for (std::int64_t p = 0; p < k; ++p) {
    for (std::int64_t i = 0; i < m; ++i) permuted.a()(i, p) = plain.a()(rows[i], p);
    for (std::int64_t j = 0; j < n; ++j) permuted.b()(p, j) = plain.b()(p, columns[j]);
  }
  permuted.run_well();
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j)
      ASSERT_EQ(permuted.c()(i, j), plain.c()(rows[i], columns[j])) << i << " " << j;
  }
}

TEST_P(Laws, ZeroPaddingChangesNothing) {
  GemmData plain(base(6, 5, 50));
  plain.run_well();
  for (const std::int64_t k : {51, 63, 64}) {
    GemmData padded(base(6, 5, k));
    for (std::int64_t p = 0; p < k; ++p) {
      for (std::int64_t i = 0; i < 6; ++i) padded.a()(i, p) = p < 50 ? plain.a()(i, p) : 0.0F;
      for (std::int64_t j = 0; j < 5; ++j) padded.b()(p, j) = p < 50 ? plain.b()(p, j) : 0.0F;
    }
    padded.run_well();
    EXPECT_EQ(bits_of(padded.result()), bits_of(plain.result())) << k;
  }
}

TEST_P(Laws, RunsRepeatBitForBit) {
  GemmData first(base(40, 30, 90)), second(base(40, 30, 90));
  first.run_well();
  second.run_well();
  EXPECT_EQ(bits_of(first.result()), bits_of(second.result()));
}

// Lengths are 0, 1, odd, prime and tile +- 1; transposes, leading dimensions, scalars and batches are random.
TEST_P(Laws, RandomProblemsAgreeWithTheExactResult) {
  std::mt19937 random(17);
  const std::int64_t sizes[] = {0, 1, 2, 3, 7, 16, 31, 33, 64, 65, 127, 128, 129};
  const float scalars[] = {0, 1, -1, 0.75F, 1e-20F, -3e7F};
  const auto pick = [&](const auto& list) { return list[random() % std::size(list)]; };
  for (int trial = 0; trial < (thorough ? 60 : 10); ++trial) {
    GemmCase test = base(pick(sizes), pick(sizes), pick(sizes));
    test.op_a = static_cast<kintsugi_op>(random() % 3);
    test.op_b = static_cast<kintsugi_op>(random() % 3);
    test.layout = static_cast<kintsugi_layout>(random() % 2);
    test.pad_a = random() % 4;
    test.pad_b = random() % 4;
    test.pad_c = random() % 4;
    test.gap = 1 + random() % 5;
    test.batch = 1 + random() % 2;
    test.alpha = pick(scalars);
    test.beta = pick(scalars);
    test.seed = 1000 + static_cast<std::uint64_t>(trial);
    GemmData data(test);
    const std::vector<float> before = data.raw_c();
    data.run_well();
    for (std::int64_t t = 0; t < test.batch; ++t) {
      const Allowance<float> allowed(*core::find_scheme(GetParam().scheme),
                                     *core::find_engine(GetParam().engine), constant(data.a(t)),
                                     constant(data.b(t)));
      for (const auto& element : element_errors(data, before, t)) {
        ASSERT_LE(std::abs(element.error), allowed(element, test.alpha))
            << "trial " << trial << " m " << test.m << " n " << test.n << " k " << test.k;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Laws, testing::ValuesIn(schemes_on_engines()), [](const auto& test) {
  std::string name = test.param.scheme + "_" + test.param.engine;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// An intended failure shows that the exact comparison above finds a wrong element.
TEST(Harness, SeesAWrongElement) {
  GemmData data(GemmCase{.m = 5, .n = 4, .k = 20, .scheme = "fp16x3", .engine = "reference"});
  data.run_well();
  data.c()(3, 2) += 1e-5F;
  double worst = 0;
  for (const auto& element : element_errors(data))
    worst = std::max(worst, std::abs(element.error) / element.absolute);
  EXPECT_GT(worst, 28 * 0x1p-24);
}

}  // namespace
}  // namespace kintsugi::test
