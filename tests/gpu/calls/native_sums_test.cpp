// Tests native products of a device under a contract: cuBLAS's sums, and elements that are recomputed since
// underflow or overflow may have spoiled them.
#include <gmock/gmock.h>

#include <cmath>
#include <complex>
#include <limits>
#include <random>

#include "gpu/calls/contract_bound.hpp"
#include "gpu/calls/device_stream.hpp"

namespace kintsugi::test {
namespace {

// Returns a case whose elements are all `a` in A and all `b` in B.
template <class T>
GemmDataOf<T> filled(GemmCase test, T a, T b) {
  test.engine = "cuda";
  test.policy = "native";
  GemmDataOf<T> data(test);
  for (std::int64_t p = 0; p < test.k; ++p) {
    for (std::int64_t i = 0; i < test.m; ++i) data.a()(i, p) = a;
    for (std::int64_t j = 0; j < test.n; ++j) data.b()(p, j) = b;
  }
  return data;
}

// Expects every element of C to be `expected`, with beta = 0 and with beta = 1 and C = 0, where the sums are
// checked before they are added to C.
template <class T>
void expect_every_element(T a, T b, T alpha, std::int64_t k, T expected) {
  for (const double beta : {0.0, 1.0}) {
    for (const bool on_device : {false, true}) {
      GemmDataOf<T> data =
          filled<T>({.m = 70, .n = 3, .k = k, .alpha = static_cast<double>(alpha), .beta = beta}, a, b);
      for (std::int64_t j = 0; j < 3; ++j) {
        for (std::int64_t i = 0; i < 70; ++i) data.c()(i, j) = 0;
      }
      DeviceGemm<T>(data, {.device_scalars = on_device}).run_well();
      for (std::int64_t j = 0; j < 3; ++j) {
        for (std::int64_t i = 0; i < 70; ++i)
          ASSERT_EQ(data.c()(i, j), expected) << "beta " << beta << ", element " << i << ", " << j;
      }
    }
  }
}

TEST(NativeSums, ProductsThatUnderflowAreRecomputed) {
  expect_every_element<double>(0x1p-537, 0x1p-538, 1, 1024, 0x1p-1065);
  expect_every_element<double>(0x1p-537, 0x1p-538, 0x1p400, 1024, 0x1p-665);
  expect_every_element<float>(0x1p-75F, 0x1p-75F, 1, 1024, 0x1p-140F);
  expect_every_element<float>(0x1p-75F, 0x1p-75F, 0x1p100F, 1024, 0x1p-40F);
}

TEST(NativeSums, SumsThatOverflowBeforeAlphaAreFinite) {
  expect_every_element<double>(0x1p600, 0x1p420, 0x1p-300, 64, 0x1p726);
  expect_every_element<double>(-0x1p700, 0x1p420, 0x1p-300, 64, -0x1p826);
  expect_every_element<float>(0x1p70F, 0x1p56F, 0x1p-60F, 64, 0x1p72F);
}

TEST(NativeSums, KeepZerosAndSpecialValues) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double beta : {0.0, 2.0}) {
    GemmDataOf<double> data = filled<double>({.m = 200, .n = 130, .k = 300, .beta = beta}, 1, 1);
    for (std::int64_t p = 0; p < 300; ++p) data.a()(0, p) = data.b()(p, 1) = 0;
    data.a()(5, 17) = nan;
    data.a()(6, 18) = infinity;
    for (std::int64_t j = 0; j < 130; ++j) {
      for (std::int64_t i = 0; i < 200; ++i) data.c()(i, j) = 1;
    }
    DeviceGemm<double>(data).run_well();
    for (std::int64_t j = 0; j < 130; ++j) {
      for (std::int64_t i = 0; i < 200; ++i) {
        const double c = data.c()(i, j);
        if (i == 5 || (i == 6 && j == 1)) {
          ASSERT_TRUE(std::isnan(c)) << i << " " << j;
        } else if (i == 6) {
          ASSERT_EQ(c, infinity) << j;
        } else {
          ASSERT_EQ(c, (i == 0 || j == 1 ? 0 : 300) + beta) << i << " " << j;
        }
      }
    }
  }
}

// A case of triangular operands with a range that no emulation accepts, so that many sums are zero.
GemmDataOf<double> triangles(double beta) {
  GemmCase test{.m = 300, .n = 270, .k = 280, .beta = beta, .engine = "cuda", .policy = "emulate"};
  GemmDataOf<double> data(test);
  std::mt19937_64 random(5);
  const auto draw = [&] {
    return std::ldexp(static_cast<double>(random() % 1000 + 1), -200 + static_cast<int>(random() % 400));
  };
  for (std::int64_t p = 0; p < test.k; ++p) {
    for (std::int64_t i = 0; i < test.m; ++i) data.a()(i, p) = i >= p ? draw() : 0;
    for (std::int64_t j = 0; j < test.n; ++j) data.b()(p, j) = p <= j ? 0 : draw();
  }
  for (std::int64_t j = 0; j < test.n; ++j) {
    for (std::int64_t i = 0; i < test.m; ++i) data.c()(i, j) = (i + j) % 3 == 0 ? 0 : (i + j) % 3 - 1.5;
  }
  return data;
}

TEST(NativeSums, SumsOfZeroAreAddedToC) {
  GemmDataOf<double> product = triangles(0);
  GemmDataOf<double> update = triangles(1);
  const Handle handle;
  DeviceGemm<double>(product).run_well(handle);
  EXPECT_EQ(handle.report()["candidates"][0]["scheme"], "native");
  GemmDataOf<double> expected = triangles(1);
  DeviceGemm<double>(update).run_well();
  int zeros = 0;
  for (std::int64_t j = 0; j < 270; ++j) {
    for (std::int64_t i = 0; i < 300; ++i) {
      ASSERT_EQ(update.c()(i, j), product.c()(i, j) + expected.c()(i, j)) << i << " " << j;
      zeros += update.c()(i, j) == 0 ? 1 : 0;
    }
  }
  EXPECT_GT(zeros, 1000);
}

template <class T>
void expect_contract(const char* distribution, double unit) {
  for (const auto& [m, n, k] :
       {std::array<std::int64_t, 3>{65, 130, 37}, {1, 200, 500}, {300, 1, 64}, {63, 64, 2100}}) {
    for (const kintsugi_layout layout : {KINTSUGI_COLUMN_MAJOR, KINTSUGI_ROW_MAJOR}) {
      const double products = static_cast<double>(k) * (core::is_complex<T> ? 2 : 1);
      expect_within<T>({.m = m,
                        .n = n,
                        .k = k,
                        .layout = layout,
                        .alpha = 1.25,
                        .distribution = distribution,
                        .engine = "cuda",
                        .policy = "native"},
                       (products + 12) * unit);
    }
  }
}

TEST(NativeSums, ContractsHoldForEveryElement) {
  for (const char* distribution : {"uniform", "offset:-75", "span:200", "subnormal"}) {
    expect_contract<float>(distribution, 0x1p-24);
    expect_contract<std::complex<float>>(distribution, 0x1p-24);
  }
  for (const char* distribution : {"uniform", "offset:-535", "graded:900", "subnormal-mixed"}) {
    expect_contract<double>(distribution, 0x1p-53);
    expect_contract<std::complex<double>>(distribution, 0x1p-53);
  }
}

}  // namespace
}  // namespace kintsugi::test
