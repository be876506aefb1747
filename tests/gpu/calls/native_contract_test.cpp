// Tests that native products of a device keep the contract of their type (docs/design/bounds.md): cuBLAS
// neither flushes operands nor scalars, and where its kernels may multiply an operand by alpha, ours
// multiply.
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <random>

#include "gpu/calls/contract_bound.hpp"
#include "gpu/calls/device_stream.hpp"

namespace kintsugi::test {
namespace {

// alpha a b in every product, and beta c; each is exact in the type, although a factor is subnormal, or would
// be if it were multiplied by alpha.
struct Factors {
  const char* name;
  double a, b, alpha, beta, c;
};

template <class T>
std::array<Factors, 8> factors() {
  constexpr bool is_single = std::is_same_v<core::RealOf<T>, float>;
  const double tiny = is_single ? 0x1p-140 : 0x1p-1060;  // subnormal
  const double small = is_single ? 0x1p-60 : 0x1p-980;
  const double large = is_single ? 0x1p100 : 0x1p1000;
  const double root = is_single ? 0x1p50 : 0x1p500;
  return {{{"subnormal A", tiny, large, 1, 0, 0},
           {"subnormal B", large, tiny, 1, 0, 0},
           {"subnormal alpha", root, root, tiny, 0, 0},
           {"alpha that would underflow A", small, large, 0x1p-20 / large, 0, 0},
           {"alpha that would underflow B", large, small, 0x1p-20 / large, 0, 0},
           {"alpha that would overflow A", large, 0x1p-20 / large, large, 0, 0},
           {"subnormal beta", 1, 1 / large, 1, tiny, large},
           {"subnormal C", 1, 1 / large, 1, large, tiny}}};
}

// Returns a case whose elements are all equal, in A, in B and in C.
template <class T>
GemmDataOf<T> filled(GemmCase test, const Factors& factors) {
  test.engine = "cuda";
  test.policy = "native";
  test.alpha = factors.alpha;
  test.beta = factors.beta;
  GemmDataOf<T> data(test);
  for (std::int64_t p = 0; p < test.k; ++p) {
    for (std::int64_t i = 0; i < test.m; ++i) data.a()(i, p) = static_cast<T>(factors.a);
    for (std::int64_t j = 0; j < test.n; ++j) data.b()(p, j) = static_cast<T>(factors.b);
  }
  for (std::int64_t j = 0; j < test.n; ++j) {
    for (std::int64_t i = 0; i < test.m; ++i) data.c()(i, j) = static_cast<T>(factors.c);
  }
  return data;
}

// Every element is k powers of two and one more: exact but for the last rounding.
template <class T>
void expect_exact_elements(const GemmCase& shape, const DeviceRun& run) {
  for (const Factors& f : factors<T>()) {
    GemmDataOf<T> data = filled<T>(shape, f);
    DeviceGemm<T>(data, run).run_well();
    const double expected = f.alpha * (static_cast<double>(shape.k) * (f.a * f.b)) + f.beta * f.c;
    for (std::int64_t j = 0; j < shape.n; ++j) {
      for (std::int64_t i = 0; i < shape.m; ++i) {
        ASSERT_NEAR(std::abs(std::complex<double>(data.c()(i, j)) - expected), 0,
                    0x1p-20 * std::abs(expected))
            << f.name << ", " << describe(shape) << ", element " << i << ", " << j;
      }
    }
  }
}

template <class T>
void expect_exact_elements_of_all_shapes() {
  constexpr std::array<std::int64_t, 3> shapes[] = {
      {1, 1, 1},   {1, 200, 100}, {200, 1, 64},  {2, 2, 3},      {100, 2, 17}, {7, 130, 40},
      {64, 8, 32}, {500, 16, 64}, {16, 500, 65}, {17, 300, 100}, {129, 70, 1}, {129, 65, 66}};
  for (const auto& [m, n, k] : shapes) {
    for (const kintsugi_op op_a : {KINTSUGI_OP_N, KINTSUGI_OP_T}) {
      for (const kintsugi_op op_b : {KINTSUGI_OP_N, KINTSUGI_OP_T}) {
        for (const kintsugi_layout layout : {KINTSUGI_COLUMN_MAJOR, KINTSUGI_ROW_MAJOR}) {
          for (const bool on_device : {false, true}) {
            expect_exact_elements<T>({.m = m, .n = n, .k = k, .op_a = op_a, .op_b = op_b, .layout = layout},
                                     {.device_scalars = on_device});
          }
        }
      }
    }
  }
}

TEST(NativeContract, NothingIsFlushedAndAlphaMultipliesSumsF32) {
  expect_exact_elements_of_all_shapes<float>();
}
TEST(NativeContract, NothingIsFlushedAndAlphaMultipliesSumsF64) {
  expect_exact_elements_of_all_shapes<double>();
}
TEST(NativeContract, NothingIsFlushedAndAlphaMultipliesSumsC32) {
  expect_exact_elements_of_all_shapes<std::complex<float>>();
}
TEST(NativeContract, NothingIsFlushedAndAlphaMultipliesSumsC64) {
  expect_exact_elements_of_all_shapes<std::complex<double>>();
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

TEST(NativeContract, SumsOfZeroAreAddedToCInAChain) {
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
      for (const char* policy : {"native", "emulate"}) {
        const double products = static_cast<double>(k) * (core::is_complex<T> ? 2 : 1);
        constexpr double alpha = 1.25;
        expect_within<T>({.m = m,
                          .n = n,
                          .k = k,
                          .layout = layout,
                          .alpha = alpha,
                          .distribution = distribution,
                          .engine = "cuda",
                          .policy = policy},
                         (products + 8) * unit, {},
                         (1 + alpha) * (2 * products + 8) *
                             static_cast<double>(std::numeric_limits<core::RealOf<T>>::min()));
      }
    }
  }
}

TEST(NativeContract, HoldsForEveryElement) {
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
