// Tests native products in a fixed order, the last candidate of the policy emulate on the host: their bits do
// not depend on layout, ops, leading dimensions, batch, threads and workspace limit, and they keep the native
// product's bound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <random>

#include "engines/cpu/products.hpp"
#include "engines/registry.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::test {
namespace {

bool has_cpu() { return core::find_engine("cpu")->unavailable_reason().empty(); }

// Makes all elements but one of a row of A so small that its dynamic range and its norm are too wide for
// every emulation.
template <class T>
void widen(GemmDataOf<T>& data, std::int64_t batch) {
  for (std::int64_t t = 0; t < batch; ++t) {
    for (std::int64_t p = 1; p < data.a(t).columns; ++p)
      data.a(t)(0, p) = static_cast<core::RealOf<T>>(0x1p-120F);
    data.a(t)(0, 0) = T(1);
  }
}

template <class T>
class FixedOrder : public testing::Test {};
using FixedOrderTypes = testing::Types<float, std::complex<float>>;
TYPED_TEST_SUITE(FixedOrder, FixedOrderTypes);

void vary(GemmCase& test, std::mt19937& random) {
  const auto draw = [&](int max) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(max + 1));
  };
  test.layout = draw(1) == 0 ? KINTSUGI_COLUMN_MAJOR : KINTSUGI_ROW_MAJOR;
  test.op_a = draw(1) == 0 ? KINTSUGI_OP_N : KINTSUGI_OP_T;
  test.op_b = draw(1) == 0 ? KINTSUGI_OP_N : KINTSUGI_OP_T;
  test.pad_a = draw(9);
  test.pad_b = draw(9);
  test.pad_c = draw(9);
  test.batch = 1 + draw(2);
  test.threads = 1 + static_cast<int>(draw(3));
  test.workspace_limit = draw(2) == 0 ? 8'000'000 : 0;
}

// At 24 x 24 x 90 OpenBLAS's row- and column-major results differ in a third of the elements.
TYPED_TEST(FixedOrder, BitsDependOnShapeAndOperandsAlone) {
  if (!has_cpu()) GTEST_SKIP() << "no engine cpu";
  using T = TypeParam;
  std::mt19937 random(25);
  for (const auto& [m, n, k] :
       {std::tuple{24, 24, 90}, {1, 200, 300}, {150, 1, 700}, {131, 65, 257}, {200, 300, 40}, {5, 7, 2}}) {
    GemmCase plain{.m = m,
                   .n = n,
                   .k = k,
                   .alpha = 1.5,
                   .beta = -0.25,
                   .engine = "cpu",
                   .policy = "emulate",
                   .threads = 1};
    std::vector<T> expected;  // elements of all batch items, item by item
    for (std::uint64_t item = 0; item < 3; ++item) {
      GemmCase alone = plain;
      alone.seed += item;
      GemmDataOf<T> data(alone);
      widen(data, 1);
      data.raw_c() = GemmDataOf<T>(plain).raw_c();  // all items of a batch have the same C
      const Handle handle;
      data.run_well(handle);
      ASSERT_EQ(candidates(handle.report()), std::vector<std::string>{"native"});
      ASSERT_TRUE(handle.report().at("candidates")[0].at("fixed_order"));
      for (const T& element : data.result()) expected.push_back(element);
    }
    for (int trial = 0; trial < (thorough ? 12 : 3); ++trial) {
      GemmCase variation = plain;
      vary(variation, random);
      GemmDataOf<T> data(variation);
      widen(data, variation.batch);
      data.run_well();
      const auto bits = bits_of(data.result());
      const auto expected_bits = bits_of(expected);
      ASSERT_TRUE(std::equal(bits.begin(), bits.end(), expected_bits.begin()))
          << m << " x " << n << " x " << k << ", trial " << trial;
    }
  }
}

TEST(FixedOrderPlan, SaysWhetherTheLastCandidateIsTheVendors) {
  if (!has_cpu()) GTEST_SKIP() << "no engine cpu";
  const auto last_of = [](const char* policy) {
    GemmData data(GemmCase{.m = 24, .n = 24, .k = 90, .engine = "cpu", .policy = policy});
    const PlanOf plan(data);
    const auto description = plan.describe();
    return std::pair(description.at("candidates").back().at("fixed_order").get<bool>(),
                     description.at("words").dump());
  };
  EXPECT_TRUE(last_of("emulate").first);
  EXPECT_THAT(last_of("emulate").second, testing::HasSubstr("in a fixed order by a program of this library"));
  for (const char* policy : {"auto", "native"}) {
    EXPECT_FALSE(last_of(policy).first);
    EXPECT_THAT(last_of(policy).second, testing::HasSubstr("vendor library's"));
  }
}

// If no emulation is proved, the plan is native alone and has the scratch memory of native tiles.
TEST(FixedOrderPlan, WithoutAnEmulationHasTheWorkspaceOfNativeTiles) {
  if (!has_cpu()) GTEST_SKIP() << "no engine cpu";
  GemmCase test{.m = 200,
                .n = 170,
                .k = 300,
                .engine = "cpu",
                .accumulator = "fp64",
                .policy = "emulate",
                .accuracy = "1e-3",
                .threads = 2};
  GemmData data(test);
  const PlanOf plan(data);
  ASSERT_EQ(plan.status, KINTSUGI_SUCCESS) << plan.error;
  EXPECT_EQ(candidates(plan.describe()), std::vector<std::string>{"native"});
  EXPECT_EQ(plan.workspace(), core::native_tiles_bytes(sizeof(float), 200, 170, 300, 2));
  data.run_well();
  for (const auto& element : element_errors(data))
    ASSERT_LE(std::abs(element.error), 300 * 0x1p-24 * element.absolute);
}

// Calls the engine's product directly, for every type: strides, threads and scratch change no bits, and the
// native bound is kept.
template <class T>
class NativeTiles : public testing::Test {};
using AllTypes = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(NativeTiles, AllTypes);

template <class T>
std::vector<T> product_of(GemmDataOf<T>& data, int threads, std::size_t scratch_bytes, bool conjugate) {
  const GemmCase& test = data.test();
  std::vector<std::byte> memory(scratch_bytes + 256);
  auto* aligned = memory.data() + (256 - reinterpret_cast<std::uintptr_t>(memory.data()) % 256);
  core::NativeProduct<T> task{constant(data.a()),
                              constant(data.b()),
                              data.c(),
                              data.alpha(),
                              data.beta(),
                              threads,
                              conjugate,
                              conjugate,
                              true,
                              {aligned, scratch_bytes}};
  core::multiply_in_tiles(task);
  std::vector<T> result;
  for (std::int64_t j = 0; j < test.n; ++j) {
    for (std::int64_t i = 0; i < test.m; ++i) result.push_back(data.c()(i, j));
  }
  return result;
}

TYPED_TEST(NativeTiles, BitsDependOnShapeAndOperandsAlone) {
  if (!has_cpu()) GTEST_SKIP() << "no engine cpu";
  using T = TypeParam;
  std::mt19937 random(18);
  for (const auto& [m, n, k] :
       {std::tuple{24, 24, 90}, {1, 130, 300}, {150, 1, 700}, {131, 65, 257}, {200, 300, 40}}) {
    for (const bool conjugate : {false, true}) {
      GemmCase plain{
          .m = m, .n = n, .k = k, .alpha = 1.5, .beta = -0.25, .alpha_im = 0.5, .distribution = "phi:2"};
      const auto bytes = [&](int threads) {
        return core::native_tiles_bytes(sizeof(core::RealOf<T>), m, core::parts_of<T> * n,
                                        core::parts_of<T> * k, threads);
      };
      GemmDataOf<T> first(plain);
      const auto expected = bits_of(product_of(first, 1, bytes(1), conjugate));
      for (int trial = 0; trial < (thorough ? 6 : 2); ++trial) {
        GemmCase variation = plain;
        vary(variation, random);
        GemmDataOf<T> data(variation);
        ASSERT_EQ(
            bits_of(product_of(data, variation.threads, bytes(1 + trial % variation.threads), conjugate)),
            expected);
      }
    }
  }
}

// One part of an element, and the sum of the magnitudes of its products.
struct ExactPart {
  long double sum = 0;
  long double magnitude = 0;

  void add(long double product) {
    sum += product;
    magnitude += std::abs(product);
  }
};

template <class T>
std::array<ExactPart, 2> exact_element(GemmDataOf<T>& data, std::int64_t i, std::int64_t j) {
  std::array<ExactPart, 2> parts;
  for (std::int64_t p = 0; p < data.test().k; ++p) {
    const std::complex<long double> x(std::real(data.a()(i, p)), std::imag(data.a()(i, p)));
    const std::complex<long double> y(std::real(data.b()(p, j)), std::imag(data.b()(p, j)));
    parts[0].add(x.real() * y.real());
    parts[0].add(-x.imag() * y.imag());
    parts[1].add(x.real() * y.imag());
    parts[1].add(x.imag() * y.real());
  }
  return parts;
}

TYPED_TEST(NativeTiles, KeepTheNativeBoundAndDoNotReadCIfBetaIsZero) {
  if (!has_cpu()) GTEST_SKIP() << "no engine cpu";
  using T = TypeParam;
  using Real = core::RealOf<T>;
  constexpr long double u = std::is_same_v<Real, float> ? 0x1p-24L : 0x1p-53L;
  for (const char* distribution : {"uniform", "uniform01", "phi:2", "cancellation:20"}) {
    for (const std::int64_t k : {1, 2, 40, 128, 129, 256, 257, 512, 513, 3000}) {
      GemmDataOf<T> data(GemmCase{.m = 9, .n = 7, .k = k, .distribution = distribution});  // C is poison
      const auto result = product_of(data, 2, core::native_tiles_bytes(sizeof(Real), 9, 14, 2 * k, 2), false);
      // Bound of the error of a part's products, plus the error of the long double reference: two roundings
      // of 2^-64 each.
      const long double allowed = core::parts_of<T> * static_cast<long double>(k) * (u + 0x1p-63L);
      for (std::int64_t e = 0; e < 63; ++e) {
        const auto exact = exact_element(data, e % 9, e / 9);
        const T& element = result[static_cast<std::size_t>(e)];
        ASSERT_LE(std::abs(std::real(element) - exact[0].sum), allowed * exact[0].magnitude)
            << distribution << k;
        ASSERT_LE(std::abs(std::imag(element) - exact[1].sum), allowed * exact[1].magnitude)
            << distribution << k;
      }
    }
  }
}

// Infinities and NaN stay through blocks of k and through the error terms of compensated FP64 additions.
TYPED_TEST(NativeTiles, KeepInfinitiesAndNan) {
  if (!has_cpu()) GTEST_SKIP() << "no engine cpu";
  using T = TypeParam;
  using Real = core::RealOf<T>;
  GemmDataOf<T> data(GemmCase{.m = 3, .n = 2, .k = 600});
  data.a()(0, 10) = std::numeric_limits<Real>::infinity();
  data.a()(1, 300) = std::numeric_limits<Real>::quiet_NaN();
  const auto result = product_of(data, 1, core::native_tiles_bytes(sizeof(Real), 3, 4, 1200, 1), false);
  const auto real = [&](std::int64_t i) { return std::real(result[static_cast<std::size_t>(i)]); };
  EXPECT_TRUE(std::isinf(real(0)));
  EXPECT_EQ(std::signbit(real(0)), std::signbit(std::real(data.b()(10, 0))));
  EXPECT_TRUE(std::isnan(real(1)));
  EXPECT_TRUE(std::isfinite(real(2)));
}

}  // namespace
}  // namespace kintsugi::test
