// Tests contracts where products or sums underflow, against MPFR: emulations and double-double arithmetic
// keep the last place of subnormal results, native arithmetic the contract's term for underflow.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "front/contract_reference.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace kintsugi::test {
namespace {

std::vector<std::string> engines() {
  if (has_cpu_engine()) return {"cpu", "reference"};
  return {"reference"};
}

std::int64_t recomputed(const Handle& handle) { return handle.report().at("recomputed_elements"); }
bool is_native(const Handle& handle) {
  return candidates(handle.report()) == std::vector<std::string>{"native"};
}

class Underflow : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Engines, Underflow, testing::ValuesIn(engines()));

// Row 0 has too wide a range and too small a norm for every emulation, so the item is computed natively;
// there row 1 underflows.
TEST_P(Underflow, RowsThatUnderflowNativelyKeepTheContract) {
  for (const double alpha : {1.0, 0x1p100}) {
    GemmCase test{.m = 2, .n = 1, .k = 1024, .alpha = alpha, .engine = GetParam(), .policy = "emulate"};
    GemmDataOf<float> data(test);
    for (std::int64_t p = 0; p < test.k; ++p) {
      data.a()(0, p) = p % 2 == 0 ? 1 : 0x1p-120F;
      data.a()(1, p) = data.b()(p, 0) = 0x1p-75F;
    }
    const auto before = data.result();
    const Handle handle;
    data.run_well(handle);
    EXPECT_TRUE(is_native(handle));
    EXPECT_EQ(recomputed(handle), 0);
    EXPECT_EQ(expect_kept(data, before, true, "row"), 2);
    EXPECT_NEAR(data.c()(0, 0) / (alpha * 0x1p-75), 512, 1e-3);
  }
}

TEST_P(Underflow, SumsOfManySubnormalProductsKeepTheContract) {
  for (const std::string policy : {"native", "emulate"}) {
    GemmDataOf<double> data(GemmCase{.m = 3, .n = 2, .k = 1024, .engine = GetParam(), .policy = policy});
    for (std::int64_t p = 0; p < 1024; ++p) {
      for (std::int64_t i = 0; i < 3; ++i) data.a()(i, p) = 0x1p-537;
      for (std::int64_t j = 0; j < 2; ++j) data.b()(p, j) = 0x1p-538;
    }
    const auto before = data.result();
    const Handle handle;
    data.run_well(handle);
    EXPECT_EQ(expect_kept(data, before, is_native(handle), policy), 6);
  }
}

TEST_P(Underflow, LowWordsOfDoubleDoubleProductsAreKept) {
  GemmDataOf<DoubleDouble> data(GemmCase{.alpha = 0x1p600, .engine = GetParam()});
  data.a()(0, 0) = 0x1.123456789abcdp-505;
  data.b()(0, 0) = 0x1.fedcba9876543p-505;
  const PairReference exact(data);
  data.run_well();
  EXPECT_LE(ratio(exact_value(data.c()(0, 0)) - exact.values[0], exact.magnitudes[0]), 9 * 0x1p-104);
}

TEST_P(Underflow, EmulatedSumsTimesASmallAlphaDoNotOverflow) {
  for (const double beta : {0.0, 0.5}) {
    GemmDataOf<float> data(GemmCase{
        .m = 3, .n = 3, .k = 4, .alpha = 0x1p-30, .beta = beta, .scheme = "ozaki2", .engine = GetParam()});
    for (std::int64_t p = 0; p < 4; ++p) {
      for (std::int64_t i = 0; i < 3; ++i) data.a()(i, p) = data.b()(p, i) = i == 1 ? 0x1p70F : 1;
    }
    data.run_well();
    EXPECT_FLOAT_EQ(data.c()(1, 1), 0x1p112F);
  }
}

// Elements are zero because of zero rows, sparse operands or cancellation.
TEST_P(Underflow, ElementsThatAreExactlyZeroStayZero) {
  for (const std::string policy : {"native", "emulate"}) {
    GemmCase test{
        .m = 70, .n = 150, .k = 60, .distribution = "integer:3", .engine = GetParam(), .policy = policy};
    test.beta = policy == "native" ? 1 : 0;
    GemmDataOf<float> data(test);
    for (std::int64_t p = 0; p < 60; ++p) data.a()(3, p) = data.b()(p, 7) = 0;
    for (std::int64_t i = 0; i < 70; ++i) data.c()(i, 9) = 0;
    const auto before = data.result();
    const Handle handle;
    data.run_well(handle);
    EXPECT_EQ(recomputed(handle), 0);
    EXPECT_EQ(data.c()(3, 5), test.beta == 0 ? 0 : before[3 + 5 * 70]);
  }
}

// Draws a number of magnitude 2^low ... 2^(high + 1) and either sign, or zero.
template <class Real>
Real draw_real(std::mt19937_64& random, int low, int high) {
  if (random() % 8 == 0) return 0;
  const int exponent = low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  const double fraction = 1 + static_cast<double>(random() >> 12) * 0x1p-52;
  return static_cast<Real>((random() % 2 == 0 ? 1 : -1) * std::ldexp(fraction, exponent));
}

// Fills a matrix whose exponents lie around one centre; some rows have another centre, some cover all
// exponents.
template <class T>
void fill_extremes(std::mt19937_64& random, const MatrixView<T>& view, int reach) {
  using Real = core::RealOf<T>;
  const int centre = static_cast<int>(random() % 7) * reach / 3 - reach;
  for (std::int64_t i = 0; i < view.rows; ++i) {
    const int vector_centre = random() % 4 == 0 ? static_cast<int>(random() % 7) * reach / 3 - reach : centre;
    const int width = random() % 5 == 0 ? reach : 3;
    const int low = std::max(vector_centre - width, -reach - 22);
    const int high = std::min(vector_centre + width, reach - 3);
    for (std::int64_t p = 0; p < view.columns; ++p) {
      if constexpr (core::is_complex<T>) {
        view(i, p) = {draw_real<Real>(random, low, high), draw_real<Real>(random, low, high)};
      } else if constexpr (std::is_same_v<T, DoubleDouble>) {
        const double hi = draw_real<double>(random, low, high);
        view(i, p) = {hi, hi * 0x1p-54 * (static_cast<double>(random() >> 12) * 0x1p-52)};
      } else {
        view(i, p) = draw_real<Real>(random, low, high);
      }
    }
  }
}

template <class T>
class UnderflowOf : public testing::Test {};
using UnderflowElements =
    testing::Types<float, double, std::complex<float>, std::complex<double>, DoubleDouble>;
TYPED_TEST_SUITE(UnderflowOf, UnderflowElements);

template <class T>
class NativeUnderflowOf : public testing::Test {};
using NativeElements = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(NativeUnderflowOf, NativeElements);

// GEMV kernels may multiply an operand by alpha: times alpha the elements of A, or of B, underflow here, but
// the sums do not. C has one row or column, in several parts of the host's stack memory.
TYPED_TEST(NativeUnderflowOf, AlphaMultipliesSumsOfProductsWithOneRowOrColumn) {
  using T = TypeParam;
  constexpr int half_range = std::is_same_v<core::RealOf<T>, float> ? 70 : 520;
  for (const std::string& engine : engines()) {
    for (const auto& [m, n] : {std::pair{1, 2100}, {2100, 1}, {1, 1024}, {1, 1}}) {
      for (int draw = 0; draw < 4; ++draw) {
        const bool scales_a = draw % 2 == 0;
        const double alpha = std::ldexp(-1.5, -half_range), beta = draw / 2 * 0.5;
        GemmCase test{.m = m, .n = n, .k = 3, .alpha = alpha, .beta = beta, .engine = engine};
        test.op_b = draw % 2 == 0 ? KINTSUGI_OP_N : KINTSUGI_OP_T;
        test.layout = layouts[draw / 2];
        test.pad_a = test.pad_b = test.pad_c = draw;
        test.policy = "native";
        GemmDataOf<T> data(test);
        const auto scale = [&](const MatrixView<T>& view, int exponent) {
          for (std::int64_t i = 0; i < view.rows; ++i) {
            for (std::int64_t p = 0; p < view.columns; ++p)
              view(i, p) = view(i, p) * T(static_cast<core::RealOf<T>>(std::ldexp(1, exponent)));
          }
        };
        scale(data.a(), scales_a ? -half_range : half_range);
        scale(data.b(), scales_a ? half_range : -half_range);
        const auto before = data.result();
        data.run_well();
        EXPECT_EQ(expect_kept(data, before, true, engine), m * n);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

#if defined(__x86_64__)
// The caller's thread flushes subnormal operands, scalars and results. Native arithmetic must not.
TYPED_TEST(NativeUnderflowOf, CallersThatFlushSubnormalsGetTheSameBits) {
  using T = TypeParam;
  constexpr int exponent = std::is_same_v<core::RealOf<T>, float> ? -140 : -1060;
  const T subnormal = T(static_cast<core::RealOf<T>>(std::ldexp(1.0, exponent)));
  for (const std::string& engine : engines()) {
    for (const std::int64_t n : {1, 20}) {
      for (const double alpha : {1.0, 0.5, std::ldexp(1.0, exponent)}) {
        GemmCase test{
            .m = 20, .n = n, .k = 30, .alpha = alpha, .beta = 1, .engine = engine, .policy = "native"};
        test.threads = 1;
        GemmDataOf<T> plain(test), flushed(test);
        for (GemmDataOf<T>* data : {&plain, &flushed}) {
          for (std::int64_t i = 0; i < test.m; ++i) {
            for (std::int64_t j = 0; j < n; ++j) data->c()(i, j) = subnormal;
            for (std::int64_t p = 0; alpha > 0.25 && p < test.k; ++p) data->a()(i, p) = subnormal;
          }
        }
        plain.run_well();
        const unsigned before = _mm_getcsr();
        _mm_setcsr(before | 0x8040U);  // flush to zero, denormals are zero
        const kintsugi_status status = flushed.run();
        _mm_setcsr(before);
        ASSERT_EQ(status, KINTSUGI_SUCCESS) << kintsugi_last_error();
        EXPECT_EQ(bits_of(flushed.result()), bits_of(plain.result())) << engine << " alpha " << alpha;
        EXPECT_FALSE(plain.result()[0] == T(0) || plain.result()[0] == subnormal) << engine;
      }
    }
  }
}
#endif

template <class T>
GemmCase draw_extreme_case(std::mt19937_64& random, int trial, int reach) {
  constexpr unsigned distinct_ops = std::is_same_v<T, core::RealOf<T>> ? 2 : 3;
  GemmCase test{.m = static_cast<std::int64_t>(1 + random() % 12),
                .n = static_cast<std::int64_t>(1 + random() % 12)};
  if (trial % 8 == 0) test.m = 1 + trial % 3, test.n = static_cast<std::int64_t>(1 + random() % 300);
  if (trial % 16 == 0) std::swap(test.m, test.n);
  test.k = static_cast<std::int64_t>(1 + random() % 30);
  test.op_a = ops[random() % distinct_ops];
  test.op_b = ops[random() % distinct_ops];
  test.layout = layouts[random() % 2];
  test.pad_a = static_cast<std::int64_t>(random() % 3);
  test.pad_c = static_cast<std::int64_t>(random() % 2);
  const double scalars[] = {1, 1, -1, 0.7, -3, std::ldexp(1.3, -reach / 2), std::ldexp(-1.1, reach / 2)};
  test.alpha = scalars[random() % 7];
  test.beta = random() % 2 == 0 ? 0 : scalars[random() % 7];
  if (core::is_complex<T> && random() % 2 == 0) {
    test.alpha_im = scalars[random() % 7];
    test.beta_im = test.beta == 0 ? 0 : scalars[random() % 7];
  }
  const auto names = engines();
  test.engine = names[random() % names.size()];
  test.policy = random() % 2 == 0 ? "auto" : "emulate";
  test.threads = 1 + trial % 2;
  return test;
}

TYPED_TEST(UnderflowOf, ContractsHoldForAnyExponents) {
  using T = TypeParam;
  constexpr int reach = std::is_same_v<core::RealOf<T>, float> ? 127 : 1023;
  std::mt19937_64 random(2026);
  std::int64_t elements = 0, promised = 0;
  for (int trial = 0; trial < (thorough ? 160 : 40); ++trial) {
    const GemmCase test = draw_extreme_case<T>(random, trial, reach);
    GemmDataOf<T> data(test);
    fill_extremes(random, data.a(), reach);
    fill_extremes(random, data.b().transposed(), reach);
    if (!(data.beta() == T(0))) fill_extremes(random, data.c(), reach);
    const auto before = data.result();
    const Handle handle;
    data.run_well(handle);
    elements += test.m * test.n;
    promised +=
        expect_kept(data, before, is_native(handle),
                    "trial " + std::to_string(trial) + " " + test.engine + " " + test.policy + " alpha " +
                        std::to_string(test.alpha) + " beta " + std::to_string(test.beta));
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(promised, elements / 3) << elements;
}

}  // namespace
}  // namespace kintsugi::test
