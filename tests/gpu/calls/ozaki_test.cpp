// Tests Ozaki scheme I on device memory: it has the bits of the engine reference, since products of slices
// are exact on both.
#include <cmath>
#include <limits>
#include <random>

#include "gpu/calls/device_stream.hpp"

namespace kintsugi::test {
namespace {

template <class T>
bool is_nan(const T& x) {
  return x != x;
}

template <class T>
struct Outcome {
  std::vector<T> result;
  json report;
};

template <class T>
Outcome<T> on_device(const GemmCase& test, const DeviceRun& run = {}) {
  GemmDataOf<T> data(test);
  const Handle handle;
  DeviceGemm<T>(data, run).run_well(handle);
  return {data.result(), handle.report()};
}

template <class T>
Outcome<T> on_reference(GemmCase test) {
  test.engine = "reference";
  GemmDataOf<T> data(test);
  const Handle handle;
  data.run_well(handle);
  return {data.result(), handle.report()};
}

template <class T>
void expect_ozaki_bits_of_the_reference(const GemmCase& test, const DeviceRun& run = {}) {
  SCOPED_TRACE(describe(test));
  const Outcome<T> device = on_device<T>(test, run);
  const Outcome<T> host = on_reference<T>(test);
  ASSERT_EQ(device.report["items_unreachable"], 0) << device.report;
  EXPECT_EQ(device.report["candidates"][0]["items"], test.batch) << device.report;
  // Vectors have numbers of slices of their own if blocks have none, the same on both engines.
  const json& counts = host.report["error_free"];
  if (test.scheme.find("slices=") != std::string::npos || test.scheme.find("mode=cr") != std::string::npos) {
    for (const char* name : {"blocks", "slices_a", "slices_b", "products"})
      EXPECT_EQ(device.report["error_free"][name], counts[name]) << name;
  }
  std::size_t different = 0;
  for (std::size_t e = 0; e < host.result.size(); ++e) {
    if (bits_of(std::vector<T>{device.result[e]}) == bits_of(std::vector<T>{host.result[e]})) continue;
    if (++different == 1)
      ADD_FAILURE() << "element " << e << ": " << device.result[e] << ", reference " << host.result[e];
  }
  ASSERT_EQ(different, 0U) << "of " << host.result.size() << "\ndevice " << device.report["error_free"]
                           << "\nhost " << counts;
}

// Schemes with every parameter: slices counted or given, products left out or not, k-blocks, blocks of C, and
// correct rounding.
const std::vector<std::string> ozaki_schemes{"ozaki-fp16",
                                             "ozaki-fp16:mode=dp",
                                             "ozaki-fp16:mode=sp",
                                             "ozaki-fp16:fast=off",
                                             "ozaki-fp16:slices=1",
                                             "ozaki-fp16:slices=4",
                                             "ozaki-fp16:slices=5:fast=off",
                                             "ozaki-fp16:slices=3:k-block=64",
                                             "ozaki-fp16:block=128",
                                             "ozaki-fp16:k-block=64",
                                             "ozaki-fp16:k-block=100:block=128",
                                             "ozaki-fp16:grid=sigma",
                                             "ozaki-fp16:grid=sigma:mode=cr",
                                             "ozaki-fp64:grid=sigma:mode=dp",
                                             "ozaki-fp16:mode=cr",
                                             "ozaki-fp16:mode=cr:k-block=64",
                                             "ozaki-fp64",
                                             "ozaki-fp64:mode=dp",
                                             "ozaki-fp64:mode=sp:block=128",
                                             "ozaki-fp64:mode=dp:slices=2"};

template <class T>
GemmCase random_ozaki_case(std::mt19937_64& random, const std::string& scheme) {
  constexpr const char* distributions[] = {"uniform", "uniform01", "phi:0.5", "phi:1", "integer:9"};
  GemmCase test = random_shape(random, 150, 150, 300);
  test.batch = 1 + below(random, 3);
  test.alpha = below(random, 3) == 0 ? -1.5 : 1;
  test.beta = below(random, 3) == 0 ? 0.75 : 0;
  test.distribution = distributions[below(random, std::size(distributions))];
  test.scheme = scheme;
  return test;
}

template <class T>
class OzakiOf : public testing::Test {};
using EveryElement = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(OzakiOf, EveryElement);

template <class T>
void sweep_ozaki(int cases) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const std::string& scheme : ozaki_schemes) {
    for (int i = 0; i < cases; ++i) {
      SCOPED_TRACE("generator " + std::to_string(seed));
      expect_ozaki_bits_of_the_reference<T>(
          random_ozaki_case<T>(random, scheme),
          {.offset = random() % 2, .pointers = i % 2 == 1, .device_scalars = random() % 2 == 1});
      if (testing::Test::HasFailure()) return;
    }
  }
}

TYPED_TEST(OzakiOf, BitsEqualTheReferencesInSmallCases) { sweep_ozaki<TypeParam>(2); }
TYPED_TEST(OzakiOf, BitsOfManyCasesEqualTheReferences) { sweep_ozaki<TypeParam>(3); }

// First several blocks of C with different numbers of slices, then several tiles.
TEST(Ozaki, BlocksHaveTheirOwnSlices) {
  for (const char* scheme :
       {"ozaki-fp16:block=128", "ozaki-fp16:block=129", "ozaki-fp64:mode=dp:block=200"}) {
    GemmCase test{.m = 390, .n = 300, .k = 130, .scheme = scheme};
    for (const char* distribution : {"uniform", "phi:2"}) {
      test.distribution = distribution;
      expect_ozaki_bits_of_the_reference<double>(test);
      expect_ozaki_bits_of_the_reference<float>(test);
    }
  }
  expect_ozaki_bits_of_the_reference<float>({.m = 2100, .n = 2070, .k = 40, .scheme = "ozaki-fp16"});
  expect_ozaki_bits_of_the_reference<double>({.m = 2100, .n = 40, .k = 70, .scheme = "ozaki-fp16:mode=cr"});
}

// Tiles of products that several blocks of C with different numbers of slices share, and many tiles.
TEST(Ozaki, ManyTilesHaveTheReferencesBits) {
  for (const char* scheme :
       {"ozaki-fp16:block=150", "ozaki-fp16:grid=sigma:block=300", "ozaki-fp16:slices=3"}) {
    for (const char* distribution : {"graded:20", "phi:1", "integer:9"}) {
      GemmCase test{.m = 1100, .n = 780, .k = 200, .distribution = distribution, .scheme = scheme};
      test.beta = 0.5;
      expect_ozaki_bits_of_the_reference<double>(test);
      expect_ozaki_bits_of_the_reference<float>(test);
    }
  }
}

// Exponents of slices so far apart that terms are subnormal beside the sum's unit, and grids for whose powers
// of two double is too narrow.
TEST(Ozaki, DeepSlicesHaveTheReferencesBitsInSmallCases) {
  for (const char* scheme :
       {"ozaki-fp16:slices=5:fast=off", "ozaki-fp16:slices=3:grid=sigma", "ozaki-fp64:mode=dp:slices=3"}) {
    for (const double scale : {0x1p1022, 1.0, 0x1p-90}) {
      const GemmCase test{.m = 70, .n = 60, .k = 5, .scheme = scheme};
      GemmCase on_host = test;
      on_host.engine = "reference";
      GemmDataOf<double> data(test), host(on_host);
      for (GemmDataOf<double>* run : {&data, &host}) {
        const auto value = [&](std::int64_t v, std::int64_t p) {  // inner index 0 is far above the others
          return std::ldexp(static_cast<double>((7 * v + 3 * p) % 5 - 2),
                            p == 0 ? 0 : static_cast<int>(-860 - 20 * p));
        };
        for (std::int64_t p = 0; p < test.k; ++p) {
          for (std::int64_t i = 0; i < test.m; ++i) run->a()(i, p) = scale * value(i, p) / 4;
          for (std::int64_t j = 0; j < test.n; ++j) run->b()(p, j) = value(j, p);
        }
      }
      DeviceGemm<double>(data).run_well();
      host.run_well();
      EXPECT_EQ(bits_of(data.result()), bits_of(host.result())) << scheme << ", scale " << scale;
    }
  }
}

// Sums over k leave the accumulators in parts.
TEST(Ozaki, SumsOfSeveralRunsHaveTheReferencesBits) {
  for (const char* scheme : {"ozaki-fp16:k-block=1024", "ozaki-fp16:k-block=256:slices=3",
                             "ozaki-fp16:k-block=1000:block=128", "ozaki-fp16:k-block=2048:grid=sigma"}) {
    for (const std::int64_t k : {1025, 2111, 5000}) {
      for (const char* distribution : {"uniform01", "phi:1", "power-of-two:3"}) {
        expect_ozaki_bits_of_the_reference<double>(
            {.m = 150, .n = 140, .k = k, .distribution = distribution, .scheme = scheme});
      }
    }
  }
}

// k is longer than the k-blocks after which sums in fp32 are added outside.
TEST(Ozaki, LongSumsAreExact) {
  for (const std::int64_t k : {65536, 65537, 140001}) {
    for (const char* scheme : {"ozaki-fp16:slices=2", "ozaki-fp16:mode=cr:k-block=4096", "ozaki-fp64"})
      expect_ozaki_bits_of_the_reference<double>(
          {.m = 3, .n = 5, .k = k, .op_a = KINTSUGI_OP_T, .scheme = scheme});
  }
}

// Rows of few bits have no residual left before Algorithm 3 has enough slices; they are multiplied by all
// slices of B (dgemm-tc, section 3.2).
TEST(Ozaki, RowsOfFewBitsKeepAllProductsInSmallCases) {
  for (const int bits : {1, 9, 20, 24}) {
    GemmCase test{.m = 70, .n = 60, .k = 90, .scheme = "ozaki-fp16:mode=dp"};
    GemmDataOf<double> data(test), host(test);
    for (GemmDataOf<double>* run : {&data, &host}) {
      const MatrixView<double> a = run->a();
      for (std::int64_t p = 0; p < a.columns; ++p) {
        for (std::int64_t i = 0; i < a.rows; ++i)
          a(i, p) = std::ldexp(std::rint(std::ldexp(a(i, p), bits)), -bits);
      }
    }
    const Handle handle, reference;
    DeviceGemm<double>(data).run_well(handle);
    host.run_well(reference);
    EXPECT_EQ(handle.report()["items_unreachable"], 0) << bits << " bits: " << handle.report();
    EXPECT_EQ(bits_of(data.result()), bits_of(host.result()))
        << bits << " bits\ndevice " << handle.report()["error_free"] << "\nhost "
        << reference.report()["error_free"];
    EXPECT_EQ(handle.report()["error_free"]["fast_blocks"], reference.report()["error_free"]["fast_blocks"]);
  }
}

// Row 0 has no residual after two slices, which are too few for Algorithm 3; row 1 has enough with two, and a
// residual. So the report's bound must be that of two slices, as on the host.
TEST(Ozaki, ReportedSlicesCountRowsWithAResidual) {
  GemmCase test{.m = 2, .n = 2, .k = 2, .scheme = "ozaki-fp16:mode=sp"};
  GemmDataOf<double> data(test), host(test);
  for (GemmDataOf<double>* run : {&data, &host}) {
    run->a()(0, 0) = run->a()(1, 0) = run->b()(0, 0) = 1;
    run->b()(0, 1) = run->b()(1, 0) = 0;
    run->b()(1, 1) = 0x1p10;
    run->a()(0, 1) = 0x1p-13;
    run->a()(1, 1) = 0x1p-35 * (1 + 0x1p-13);
  }
  const Handle handle, reference;
  DeviceGemm<double>(data).run_well(handle);
  host.run_well(reference);
  EXPECT_EQ(bits_of(data.result()), bits_of(host.result()));
  for (const Handle* run : {&handle, &reference})
    EXPECT_EQ(run->report().at("adapted").at("split_a").at("slices"), 2) << run->report();
}

TEST(Ozaki, ZerosAndSingleElementsHaveTheReferencesBitsInSmallCases) {
  for (const std::string& scheme : ozaki_schemes) {
    for (const char* distribution : {"uniform", "integer:9"}) {
      for (const std::int64_t k : {1, 2, 65})
        expect_ozaki_bits_of_the_reference<double>(
            {.m = 1, .n = 1, .k = k, .distribution = distribution, .scheme = scheme});
    }
    GemmCase test{.m = 33, .n = 17, .k = 40, .beta = 2, .scheme = scheme};
    GemmDataOf<float> data(test), host(test);
    for (GemmDataOf<float>* run : {&data, &host}) {
      const MatrixView<float> a = run->a();
      for (std::int64_t p = 0; p < a.columns; ++p) {
        for (std::int64_t i = 0; i < a.rows; ++i) a(i, p) = i == 5 && p == 7 ? 3.0F : -0.0F;
      }
    }
    DeviceGemm<float>(data).run_well();
    host.run_well();
    EXPECT_EQ(bits_of(data.result()), bits_of(host.result())) << scheme;
  }
}

// A batch item that needs more slices than the scheme has becomes NaN and is counted; other items are
// computed.
TEST(Ozaki, ItemsOfTooWideRangeBecomeNanInSmallCases) {
  const struct {
    const char* scheme;
    bool too_wide;
  } cases[] = {{"ozaki-fp16:mode=cr", true},
               {"ozaki-fp64", true},
               {"ozaki-fp16:mode=dp", true},
               {"ozaki-fp16:slices=3", false}};
  for (const auto& [scheme, too_wide] : cases) {
    SCOPED_TRACE(scheme);
    GemmCase test{.m = 20, .n = 30, .k = 50, .batch = 3, .scheme = scheme};
    GemmDataOf<double> data(test);
    const MatrixView<double> a = data.a(1);
    const MatrixView<double> b = data.b(1);
    for (std::int64_t p = 0; p < a.columns; ++p) {  // A = X D, B = D^-1 Y
      const double factor = std::ldexp(1.0, static_cast<int>(8 * p));
      for (std::int64_t i = 0; i < a.rows; ++i) a(i, p) *= factor;
      for (std::int64_t j = 0; j < b.columns; ++j) b(p, j) /= factor;
    }
    const Handle handle;
    DeviceGemm<double>(data).run_well(handle);
    const json report = handle.report();
    EXPECT_EQ(report["items_unreachable"], too_wide ? 1 : 0) << report;
    EXPECT_EQ(report["candidates"][0]["items"], too_wide ? 2 : 3) << report;
    for (std::int64_t t = 0; t < test.batch; ++t) {
      for (std::int64_t j = 0; j < test.n; ++j) {
        for (std::int64_t i = 0; i < test.m; ++i)
          ASSERT_EQ(is_nan(data.c(t)(i, j)), too_wide && t == 1)
              << "element " << i << ", " << j << " of " << t;
      }
    }
  }
}

// Exact sums cover exponents up to 39 apart (span:39), as docs/schemes/ozaki-fp16.md promises.
TEST(Ozaki, ExactSumsCoverTheStatedRangeInSmallCases) {
  for (const char* scheme : {"ozaki-fp16:mode=cr", "ozaki-fp64"}) {
    for (const std::int64_t k : {3, 64, 500}) {
      expect_ozaki_bits_of_the_reference<double>(
          {.m = 40, .n = 30, .k = k, .distribution = "span:39", .scheme = scheme});
      expect_ozaki_bits_of_the_reference<float>(
          {.m = 40, .n = 30, .k = k, .distribution = "span:39", .scheme = scheme});
      expect_ozaki_bits_of_the_reference<double>(
          {.m = 40, .n = 30, .k = k, .alpha = 0x1p100, .distribution = "subnormal", .scheme = scheme});
      expect_ozaki_bits_of_the_reference<double>({.m = 40,
                                                  .n = 30,
                                                  .k = k,
                                                  .alpha = 3e-7,
                                                  .beta = -0x1.3p-20,
                                                  .distribution = "uniform",
                                                  .scheme = scheme});
    }
  }
}

template <class T>
void expect_special_values(const std::string& scheme) {
  SCOPED_TRACE(scheme);
  GemmCase test{.m = 40, .n = 33, .k = 50, .beta = 0.5, .scheme = scheme};
  const auto bits_on = [&](bool on_device) {
    GemmCase engine_test = test;
    engine_test.engine = on_device ? "" : "reference";
    GemmDataOf<T> data(engine_test);
    data.a()(3, 4) = std::numeric_limits<T>::quiet_NaN();
    data.a()(5, 6) = std::numeric_limits<T>::infinity();
    data.b()(7, 8) = -std::numeric_limits<T>::infinity();
    if (on_device) {
      DeviceGemm<T>(data).run_well();
    } else {
      data.run_well();
    }
    std::vector<T> result = data.result();
    for (T& element : result) {  // sign and payload of a NaN depend on the machine
      if (std::isnan(element)) element = std::numeric_limits<T>::quiet_NaN();
    }
    return bits_of(result);
  };
  constexpr bool on_device = true;
  EXPECT_EQ(bits_on(on_device), bits_on(!on_device));
}

TEST(Ozaki, SpecialValuesEqualTheReferencesInSmallCases) {
  for (const std::string& scheme : ozaki_schemes) {
    expect_special_values<float>(scheme);
    expect_special_values<double>(scheme);
  }
}

// ------------------------------------------------------------------ prepared operands, workspaces, graphs

TEST(Ozaki, PreparedOperandsKeepTheBitsInSmallCases) {
  for (const char* scheme : {"ozaki-fp16", "ozaki-fp16:slices=3", "ozaki-fp64"}) {
    for (const bool borrow : {false, true}) {
      SCOPED_TRACE(scheme);
      GemmCase test{.m = 70, .n = 31, .k = 130, .op_b = KINTSUGI_OP_T, .batch = 2, .scheme = scheme};
      GemmDataOf<double> data(test);
      DeviceGemm<double> device(data);
      const auto problem = device.problem();
      const auto options = device.options();
      kintsugi_plan plan = nullptr;
      kintsugi_prepared a = nullptr, b = nullptr;
      ASSERT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &plan), KINTSUGI_SUCCESS)
          << kintsugi_last_error();
      kintsugi_operands operands = device.operands();
      const auto prepare = borrow ? kintsugi_prepare_borrowed : kintsugi_prepare;
      ASSERT_EQ(prepare(nullptr, plan, KINTSUGI_A, operands.a, &a), KINTSUGI_SUCCESS)
          << kintsugi_last_error();
      ASSERT_EQ(prepare(nullptr, plan, KINTSUGI_B, operands.b, &b), KINTSUGI_SUCCESS)
          << kintsugi_last_error();
      operands.prepared_a = a;
      operands.prepared_b = b;
      ASSERT_EQ(kintsugi_plan_execute(nullptr, plan, &operands), KINTSUGI_SUCCESS) << kintsugi_last_error();
      device.fetch();
      EXPECT_EQ(bits_of(data.result()), bits_of(on_reference<double>(test).result));
      kintsugi_prepared_destroy(a);
      kintsugi_prepared_destroy(b);
      kintsugi_plan_destroy(plan);
    }
  }
}

std::size_t workspace_of(const GemmCase& test) {
  GemmDataOf<double> data(test);
  DeviceGemm<double> device(data);
  const auto problem = device.problem();
  const auto options = device.options();
  kintsugi_plan plan = nullptr;
  std::size_t bytes = 0;
  EXPECT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &plan), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  EXPECT_EQ(kintsugi_plan_workspace_size(plan, &bytes), KINTSUGI_SUCCESS);
  kintsugi_plan_destroy(plan);
  return bytes;
}

TEST(Ozaki, BitsDoNotDependOnTheWorkspaceLimit) {
  for (const char* scheme : {"ozaki-fp16", "ozaki-fp16:mode=cr"}) {
    GemmCase test{.m = 8300, .n = 4200, .k = 200, .scheme = scheme};
    const std::size_t unlimited = workspace_of(test);
    const auto bits = device_bits<double>(test);
    test.workspace_limit = static_cast<std::int64_t>(0.96 * static_cast<double>(unlimited));
    EXPECT_LT(workspace_of(test), unlimited);
    EXPECT_EQ(device_bits<double>(test), bits)
        << scheme << ", limit " << test.workspace_limit << " of " << unlimited;
  }
}

TEST(Ozaki, ReplaysCountSlicesOfTheirOwnDataInSmallCases) {
  for (const char* scheme : {"ozaki-fp16", "ozaki-fp16:mode=cr"}) {
    GemmCase test{.m = 70, .n = 31, .k = 130, .scheme = scheme};
    const Stream stream;
    GemmDataOf<double> data(test);
    DeviceGemm<double> device(data, {.queue = stream.queue()});
    const auto problem = device.problem();
    const auto options = device.options();
    kintsugi_plan plan = nullptr;
    std::size_t bytes = 0;
    ASSERT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &plan), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    kintsugi_plan_workspace_size(plan, &bytes);
    const DeviceArray<unsigned char> workspace(bytes);
    kintsugi_operands operands = device.operands();
    operands.workspace = workspace.data();
    operands.workspace_size = bytes;
    const CapturedCall call(stream, nullptr, plan, operands);
    for (const char* distribution : {"uniform", "integer:9", "phi:1"}) {
      GemmCase replayed = test;
      replayed.distribution = distribution;
      GemmDataOf<double> fresh(replayed);
      core::cuda::copy_to_device({}, device.a().data(), fresh.raw_a().data(),
                                 fresh.raw_a().size() * sizeof(double));
      core::cuda::copy_to_device({}, device.b().data(), fresh.raw_b().data(),
                                 fresh.raw_b().size() * sizeof(double));
      call.replay();
      fresh.raw_c() = device.c().host();
      EXPECT_EQ(bits_of(fresh.result()), bits_of(on_reference<double>(replayed).result))
          << scheme << ", " << distribution;
    }
    workspace.host();  // checks the guards
    kintsugi_plan_destroy(plan);
  }
}

}  // namespace
}  // namespace kintsugi::test
