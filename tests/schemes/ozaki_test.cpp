// ozaki-fp16 and ozaki-fp64: bits, counts, bounds and errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "schemes/program.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/fuzz_promise.hpp"
#include "tests/support/scheme_bound.hpp"

namespace kintsugi::test {
namespace {

using testing::HasSubstr;

const std::vector<std::string> exact_schemes{"ozaki-fp16:mode=cr", "ozaki-fp64",
                                             "ozaki-fp16:mode=cr:k-block=64", "ozaki-fp16:mode=cr:grid=sigma",
                                             "ozaki-fp64:grid=sigma"};

template <class T>
std::vector<T> exactly(GemmDataOf<T>& data) {
  std::vector<T> expected(static_cast<std::size_t>(data.test().m * data.test().n));
  lab::Product<T> product{constant(data.a()), constant(data.b()), data.alpha(), data.beta()};
  product.c0 = constant(data.c());
  lab::exact_product<T>(product,
                        MatrixView<T>{expected.data(), data.test().m, data.test().n, 1, data.test().m});
  return expected;
}

template <class T>
void expect_correctly_rounded(GemmCase test, const std::string& scheme) {
  test.scheme = scheme;
  GemmDataOf<T> data(test);
  const std::vector<T> expected = exactly(data);
  data.run_well();
  const std::vector<T> result = data.result();
  for (std::size_t e = 0; e < expected.size(); ++e)
    ASSERT_EQ(result[e], expected[e]) << scheme << " " << test.distribution << ", element " << e;
}

TEST(OzakiCr, IsCorrectlyRounded) {
  for (const std::string& scheme : exact_schemes) {
    for (const char* distribution :
         a_part_of({"uniform", "subnormal-mixed", "phi:2", "cancellation:200", "uniform01", "phi:0.1",
                    "phi:4", "subnormal", "graded:900", "span:60", "cancellation:30", "offset:1022",
                    "integer:9", "power-of-two:511", "powers-of-two:60"})) {
      GemmCase test{.m = 9, .n = 7, .k = 150, .distribution = distribution, .engine = "reference"};
      expect_correctly_rounded<double>(test, scheme);
      test.alpha = -0x1.1p-20;
      test.beta = 3e-7;
      expect_correctly_rounded<double>(test, scheme);
    }
    for (const char* distribution : {"uniform", "phi:2", "type4", "subnormal", "graded:60", "offset:126"}) {
      expect_correctly_rounded<float>(
          {.m = 9, .n = 7, .k = 150, .distribution = distribution, .engine = "reference"}, scheme);
    }
  }
}

// Sums that overflow on their way, ties, what lies below the last place.
TEST(OzakiCr, Corners) {
  const double huge = std::numeric_limits<double>::max();
  const double tiny = std::numeric_limits<double>::denorm_min();
  const std::vector<std::vector<std::pair<double, double>>> sums{
      {{huge, huge}, {huge, -huge}, {1, 1}},
      {{huge, 1}},
      {{huge, 1}, {huge, 0x1p-54}},  // the tie below 2^1024
      {{huge, 1}, {huge, 0x1p-53}},
      {{huge, huge}, {huge, huge}},
      {{tiny, 0.5}},
      {{tiny, 0.5}, {tiny, tiny}},
      {{tiny, 1.5}},
      {{1, 1}, {0x1p-53, 1}},
      {{1, 1}, {0x1p-53, 1}, {tiny, tiny}},
      {{1, 1}, {0x1p-53, 1}, {tiny, -tiny}},
      {{tiny, huge}, {-1, 0x1p-50}},
      {{1, 0x1p-60}, {0x1p-30, 1}},
      {{0, 1}},
  };
  for (const std::string& scheme : exact_schemes) {
    for (std::size_t s = 0; s < sums.size(); ++s) {
      GemmDataOf<double> data(GemmCase{.k = std::ssize(sums[s]), .scheme = scheme, .engine = "reference"});
      for (std::size_t p = 0; p < sums[s].size(); ++p) {
        const auto index = static_cast<std::int64_t>(p);
        data.a()(0, index) = sums[s][p].first;
        data.b()(index, 0) = sums[s][p].second;
      }
      const std::vector<double> expected = exactly(data);
      data.run_well();
      EXPECT_EQ(data.c()(0, 0), expected[0]) << scheme << " " << s;
    }
  }
}

std::vector<std::uint64_t> bits_with(GemmCase test, const std::string& engine, const std::string& accumulator,
                                     int threads, std::int64_t limit) {
  test.engine = engine;
  test.accumulator = accumulator;
  test.threads = threads;
  test.workspace_limit = limit;
  GemmDataOf<double> data(test);
  data.run_well();
  return bits_of(data.result());
}

// Integers all the way: engines, accumulators, threads and workspace limits cannot be told apart.
TEST(Ozaki, BitsAreThoseOfTheScheme) {
  const std::int64_t n = thorough ? 140 : 20;
  for (const std::string scheme :
       a_part_of({"ozaki-fp16", "ozaki-fp64", "ozaki-fp16:mode=sp", "ozaki-fp16:mode=cr",
                  "ozaki-fp64:mode=dp", "ozaki-fp16:slices=4", "ozaki-fp16:block=150",
                  "ozaki-fp16:k-block=16", "ozaki-fp16:grid=sigma"})) {
    GemmCase test{.m = 170, .n = n, .k = 40, .distribution = "phi:1", .scheme = scheme};
    test.alpha = 1.25;
    test.beta = -0.5;
    const auto bits = bits_with(test, "reference", "", 1, 0);
    if (scheme == "ozaki-fp16" && thorough) {
      for (const char* accumulator : {"fp32", "v100", "a100", "h200-mma"})
        EXPECT_EQ(bits_with(test, "reference", accumulator, 2, 0), bits) << accumulator;
    }
    test.engine = "reference";
    test.threads = 2;  // the workspace depends on them
    GemmDataOf<double> data(test);
    const auto limit = static_cast<std::int64_t>(PlanOf(data).workspace()) - 1;
    const bool has_smaller = scheme != "ozaki-fp16:block=150";  // blocks of 85 x 70
    EXPECT_EQ(bits_with(test, "reference", "", 2, has_smaller ? limit : 0), bits)
        << scheme << ", limit " << limit;
    if (!has_cpu_engine()) continue;
    for (const int threads : {1, 2, 5}) EXPECT_EQ(bits_with(test, "cpu", "", threads, 0), bits) << scheme;
    test.engine = "cpu";
    test.threads = 1;
    GemmDataOf<double> on_cpu(test);
    const auto cpu_limit = static_cast<std::int64_t>(PlanOf(on_cpu).workspace()) - 1;
    EXPECT_EQ(bits_with(test, "cpu", "", 1, has_smaller ? cpu_limit : 0), bits) << scheme;
  }
}

// In CR mode the blocks of k are nothing but another order of an exact sum.
TEST(OzakiCr, BlocksOfKKeepTheBits) {
  const std::int64_t n = thorough ? 30 : 2;
  GemmCase test{.m = 20, .n = n, .k = 500, .distribution = "phi:2", .scheme = "ozaki-fp16:mode=cr"};
  const auto bits = bits_with(test, "reference", "", 1, 0);
  for (const char* block : {"1", "16", "100", "64"}) {
    test.scheme = std::string("ozaki-fp16:mode=cr:k-block=") + block;
    EXPECT_EQ(bits_with(test, "reference", "", 1, 0), bits) << block;
  }
}

// Algorithm 3 once more, from its text: rounded slices in long double, sums in double.
struct Count {
  int slices;
  bool exhausted;
};
Count counted(GemmDataOf<double>& data, int bits, double u) {
  const auto& test = data.test();
  std::vector<long double> weights(test.k);
  for (std::int64_t p = 0; p < test.k; ++p) {
    for (std::int64_t j = 0; j < test.n; ++j) weights[p] += std::fabs(data.b()(p, j));
  }
  int most = 0;
  bool any_exhausted = true;
  for (std::int64_t i = 0; i < test.m; ++i) {
    std::vector<long double> rest(test.k);
    long double whole = 0;
    for (std::int64_t p = 0; p < test.k; ++p) {
      rest[p] = data.a()(i, p);
      whole += std::fabs(rest[p]) * weights[p];
    }
    bool satisfied = false;
    int d = 0;
    while (!satisfied) {
      long double largest = 0;
      for (const auto x : rest) largest = std::max(largest, std::fabs(x));
      if (largest == 0) break;
      const long double grid = std::exp2(std::ceil(std::log2(largest)) - bits);
      long double slice = 0;
      for (std::int64_t p = 0; p < test.k; ++p) {
        const long double part = std::nearbyint(rest[p] / grid) * grid;
        rest[p] -= part;
        slice += std::fabs(part) * weights[p];
      }
      ++d;
      satisfied = d >= 2 && 2 * std::sqrt(static_cast<double>(test.k)) * u * whole > (d + 1) * slice;
    }
    if (d >= most) any_exhausted = d > most ? !satisfied : any_exhausted || !satisfied;
    most = std::max(most, d);
  }
  return {most, any_exhausted};
}

json counts_of(GemmCase test) {
  GemmDataOf<double> data(test);
  const Handle handle;
  data.run_well(handle);
  return handle.report().at("error_free");
}

TEST(Ozaki, SlicesAreThoseOfAlgorithmThree) {
  for (const char* distribution :
       a_part_of({"phi:1", "graded:40", "uniform", "phi:0.1", "phi:2", "span:30"})) {
    for (const std::int64_t k : {30, 250, 1100}) {
      GemmCase test{.m = 12, .n = 10, .k = k, .distribution = distribution, .engine = "reference"};
      GemmDataOf<double> data(test);
      for (const bool wide : {false, true}) {
        test.scheme = wide ? "ozaki-fp64:mode=dp" : "ozaki-fp16";
        const int bits = static_cast<int>(std::floor(((wide ? 53 : 24) - std::ceil(std::log2(k))) / 2));
        const Count expected = counted(data, bits, 0x1p-53);
        const json counts = counts_of(test);
        const int d = expected.slices;
        EXPECT_EQ(counts.at("slices_a"), d) << distribution << " " << k;
        if (!expected.exhausted) {
          EXPECT_EQ(counts.at("fast_blocks"), 1);
          EXPECT_EQ(counts.at("products"), d * (d + 1) / 2);
        }
      }
    }
  }
}

// Section 5.2: 66 products, so 11 slices, at n = 7168 and phi = 0.1. The integer grid needs one slice fewer.
TEST(Ozaki, SlicesBySigmaAreThePapers) {
  GemmCase test{.m = 8, .n = 8, .k = 7168, .distribution = "phi:0.1", .engine = "reference"};
  test.accumulator = "fp32";
  for (const auto& [scheme, slices] :
       {std::pair{"ozaki-fp16:grid=sigma", 11}, std::pair{"ozaki-fp16:grid=integer", 10}}) {
    test.scheme = scheme;
    const json counts = counts_of(test);
    EXPECT_EQ(counts.at("slices_a"), slices) << scheme;
    EXPECT_EQ(counts.at("products"), slices * (slices + 1) / 2) << scheme;
  }
}

// Small integers end before Algorithm 3 has enough: then no product is left out, and the result is exact.
TEST(Ozaki, FastModeEndsWhereNothingIsLeft) {
  GemmCase test{.m = 20,
                .n = 20,
                .k = 60,
                .distribution = "integer:900",
                .scheme = "ozaki-fp16",
                .engine = "reference"};
  const json counts = counts_of(test);
  EXPECT_EQ(counts.at("fast_blocks"), 0);
  EXPECT_EQ(counts.at("products").get<double>(),
            counts.at("slices_a").get<double>() * counts.at("slices_b").get<double>());
  expect_correctly_rounded<double>(test, "ozaki-fp16");
}

// A row that ends with as many slices as another is content with still meets all of B.
TEST(Ozaki, ARowThatEndsMeetsAllOfB) {
  GemmDataOf<double> data(GemmCase{
      .m = 4, .n = 8, .k = 1024, .distribution = "uniform01", .scheme = "ozaki-fp16", .engine = "reference"});
  for (std::int64_t p = 0; p < 1024; ++p) {
    for (std::int64_t i = 0; i < 3; ++i) data.a()(i, p) = std::ceil(data.a()(i, p) * 32768);
    data.a()(3, p) = p == 0 ? 1 : p == 1 ? 0x1p-60 : 0;
  }
  data.run_well();
  for (const auto& element : element_errors(data)) {
    ASSERT_LE(std::fabs(element.error), 0x1p-50 * element.absolute) << element.i;
  }
}

TEST(Ozaki, ParametersCount) {
  GemmCase test{.m = 300, .n = 200, .k = 8, .engine = "reference"};
  test.scheme = "ozaki-fp16:slices=5";
  json counts = counts_of(test);
  EXPECT_EQ(counts.at("slices_a"), 5);
  EXPECT_EQ(counts.at("slices_b"), 5);
  EXPECT_EQ(counts.at("products"), 15);
  EXPECT_EQ(counts.at("blocks"), 1);
  test.scheme = "ozaki-fp16:slices=5:fast=off:block=128";
  counts = counts_of(test);
  EXPECT_EQ(counts.at("products"), 25);
  EXPECT_EQ(counts.at("blocks"), 6);  // 3 x 2 blocks of 100 x 100
  EXPECT_EQ(counts.at("fast_blocks"), 0);
  EXPECT_GE(counts.at("seconds").at("products"), 0);
}

// Every block has a number of slices of its own.
TEST(Ozaki, BlocksHaveTheirOwnSlices) {
  GemmCase test{.m = 256, .n = 20, .k = 40, .scheme = "ozaki-fp16:block=128", .engine = "reference"};
  GemmDataOf<double> data(test);
  for (std::int64_t i = 0; i < 128; ++i) {
    for (std::int64_t p = 0; p < 40; ++p) data.a()(i, p) = static_cast<double>(i % 7 - 3);
  }
  const Handle handle;
  data.run_well(handle);
  const json counts = handle.report().at("error_free");
  EXPECT_EQ(counts.at("blocks"), 2);
  EXPECT_EQ(counts.at("fast_blocks"), 1);
}

TEST(Ozaki, KeepsItsBounds) {
  for (const std::string scheme :
       {"ozaki-fp16", "ozaki-fp16:mode=sp", "ozaki-fp64:mode=dp", "ozaki-fp16:slices=1",
        "ozaki-fp16:slices=3", "ozaki-fp16:slices=3:fast=off", "ozaki-fp64:mode=dp:slices=2",
        "ozaki-fp16:grid=sigma", "ozaki-fp16:grid=sigma:slices=1", "ozaki-fp16:grid=sigma:slices=3"}) {
    for (const char* distribution :
         a_part_of({"phi:2", "subnormal", "uniform", "graded:40", "cancellation:30", "span:200"})) {
      for (const std::int64_t k : {1, 65, 700}) {
        GemmDataOf<double> data(GemmCase{
            .m = 13, .n = 11, .k = k, .distribution = distribution, .scheme = scheme, .engine = "reference"});
        const Allowance<double> allowed(*core::find_scheme(scheme), *core::find_engine("reference"),
                                        constant(data.a()), constant(data.b()));
        data.run_well();
        for (const auto& element : element_errors(data))
          ASSERT_LE(std::abs(element.error), allowed(element)) << scheme << " " << distribution << " " << k;
      }
    }
  }
}

// Whether all errors are within the bound of the report, which depends on the slices that were taken.
void expect_reported_bound(GemmDataOf<double>& data) {
  const Handle handle;
  data.run_well(handle);
  const json adapted = handle.report().at("adapted");
  const auto norms_of = [&](core::MatrixView<const double> vectors, const char* split) {
    return lab::vector_norms(vectors, lab::split_window(fuzz::split_of(adapted.at(split))));
  };
  const lab::VectorNorms a = norms_of(constant(data.a()), "split_a");
  const lab::VectorNorms b = norms_of(constant(data.b()).transposed(), "split_b");
  const lab::BoundCoefficients bound = fuzz::coefficients_of(adapted.at("bound_in_window"));
  for (const auto& element : element_errors(data)) {
    EXPECT_LE(std::abs(element.error), lab::allowed_error<double>(bound, element, a, b))
        << "element (" << element.i << ", " << element.j << "), bound " << adapted.at("bound_in_window");
  }
}

// Row 0 ends with two slices, too few for Algorithm 3, so that all slices of B are multiplied. Row 1 has
// enough with two slices, but not ended: what they leave of it is an error that the bound must allow.
TEST(Ozaki, ReportedBoundCoversRowsThatKeepARest) {
  for (const auto& [scheme, bits] :
       {std::pair{"ozaki-fp16:mode=sp", 11}, std::pair{"ozaki-fp64:mode=sp", 26}}) {
    SCOPED_TRACE(scheme);
    GemmDataOf<double> data(GemmCase{.m = 2, .n = 2, .k = 2, .scheme = scheme, .engine = "reference"});
    const double below_first_slice = std::ldexp(1, -bits - 2);
    data.a()(0, 0) = data.a()(1, 0) = data.b()(0, 0) = 1;
    data.b()(0, 1) = data.b()(1, 0) = 0;
    data.b()(1, 1) = 0x1p10;
    data.a()(0, 1) = below_first_slice;
    data.a()(1, 1) = 0x1p-35 * (1 + below_first_slice);
    expect_reported_bound(data);
    EXPECT_EQ(data.c()(1, 1), 0x1p-25) << "the second slice is not the last of row 1";
  }
}

// A report of zeros or special values has no slices; its bounds still are bounds.
TEST(Ozaki, BoundsWithoutSlicesAreNotNegative) {
  for (const std::string scheme : {"ozaki-fp16", "ozaki-fp64:mode=sp", "ozaki-fp64:mode=dp"}) {
    GemmDataOf<double> data(GemmCase{.m = 3, .n = 2, .k = 1, .scheme = scheme, .engine = "reference"});
    for (std::int64_t i = 0; i < 3; ++i) data.a()(i, 0) = 0;
    data.b()(0, 1) = std::numeric_limits<double>::infinity();
    const Handle handle;
    data.run_well(handle);
    const json bound = handle.report().at("adapted").at("bound_outside_window");
    for (const auto& [name, coefficient] : bound.items())
      EXPECT_GE(coefficient.get<double>(), 0) << scheme << " " << name;
  }
}

// Each product of slices that is left out, at its largest: |slice s|, counted from 0, <= 2^(1 - s gain) u_i.
TEST(Ozaki, BoundCoversAllProductsThatAreLeftOut) {
  constexpr std::int64_t k = 65536;
  for (const int d : {1, 2, 3, 4, 8, 32}) {
    const std::string scheme = "ozaki-fp16:slices=" + std::to_string(d);
    const auto program = core::fitted_program(*core::find_scheme(scheme), core::OperandType::f64, k);
    const int gain = program.split_a.residual_exponent + 1;
    const auto slice = [&](int s) { return std::ldexp(1, 1 - s * gain); };
    double left_out = slice(d) * slice(d);  // both rests
    for (int p = 1; p < d; ++p) {
      for (int q = std::max(1, d - p); q < d; ++q) left_out += slice(p) * slice(q);
    }
    const core::ErrorBound bound = core::error_bound(program, core::Accumulator::fp32, k, true, true);
    EXPECT_GE(bound.floor_both, static_cast<double>(k) * left_out) << d;
    EXPECT_LE(bound.floor_both, static_cast<double>(k) * (1.1 * left_out + 0x1p-42)) << d;
  }
}

// The bound of d slices is no idle one: errors come near it.
TEST(Ozaki, BoundIsNotFarAway) {
  const std::string scheme = "ozaki-fp16:slices=2";
  GemmDataOf<double> data(GemmCase{.m = 40, .n = 40, .k = 1, .scheme = scheme, .engine = "reference"});
  const Allowance<double> allowed(*core::find_scheme(scheme), *core::find_engine("reference"),
                                  constant(data.a()), constant(data.b()));
  data.run_well();
  double worst = 0;
  for (const auto& element : element_errors(data))
    worst = std::max(worst, std::abs(element.error) / allowed(element));
  EXPECT_GT(worst, 0.02);
}

// As accurate as FP64 and FP32 are: the error that Algorithm 3 aims at, with room for its being an estimate.
TEST(Ozaki, ReachesTheAccuracyOfItsMode) {
  for (const char* distribution : a_part_of({"phi:1", "phi:0.1", "phi:2"})) {
    for (const auto& [scheme, u] :
         {std::pair{"ozaki-fp16", 0x1p-53}, std::pair{"ozaki-fp16:mode=sp", 0x1p-24}}) {
      GemmDataOf<double> data(GemmCase{.m = 24,
                                       .n = 24,
                                       .k = 1000,
                                       .distribution = distribution,
                                       .scheme = scheme,
                                       .engine = "reference"});
      data.run_well();
      for (const auto& element : element_errors(data))
        ASSERT_LE(std::abs(element.error), 2 * std::sqrt(1000.0) * u * element.absolute)
            << scheme << distribution;
    }
  }
}

template <class T>
void expect_too_many(GemmCase test) {
  GemmDataOf<T> data(test);
  EXPECT_EQ(data.run(), KINTSUGI_CONTRACT_UNREACHABLE) << test.scheme << " " << test.distribution;
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("more than 32 slices of 8 bits"));
  for (const T x : data.result()) ASSERT_TRUE(is_poison(x)) << "C was touched";
}

TEST(Ozaki, TooManySlicesAreAnErrorBeforeCIsTouched) {
  GemmCase test{.m = 3,
                .n = 4,
                .k = 200,
                .distribution = "span:1500",
                .scheme = "ozaki-fp16:mode=cr",
                .engine = "reference"};
  expect_too_many<double>(test);
  test.distribution = "diagonal:1200";  // the small elements of A meet the large ones of B
  expect_too_many<double>(test);
  test.scheme = "ozaki-fp16";
  expect_too_many<double>(test);
}

// Complex products are real ones of twice the inner length; alpha and beta are complex.
TEST(OzakiCr, RoundsEachPartOfComplexElementsOnce) {
  using Element = std::complex<double>;
  const std::int64_t n = thorough ? 70 : 5;
  GemmCase test{.m = 200, .n = n, .k = 30, .op_a = KINTSUGI_OP_C, .beta = -0.75, .distribution = "phi:2"};
  test.alpha_im = 3;
  test.beta_im = 1e-3;
  test.engine = "reference";
  test.scheme = "superaccumulator";
  GemmDataOf<Element> exact(test);
  exact.run_well();
  for (const std::string scheme : {"ozaki-fp16:mode=cr", "ozaki-fp64:block=128"}) {
    test.scheme = scheme;
    GemmDataOf<Element> data(test);
    data.run_well();
    EXPECT_EQ(data.result(), exact.result()) << scheme;
  }
}

// Rows and columns of zeros, and nothing else.
TEST(Ozaki, ZerosHaveNoSlices) {
  GemmDataOf<double> data(
      GemmCase{.m = 3, .n = 3, .k = 5, .beta = 2, .scheme = "ozaki-fp16", .engine = "reference"});
  std::vector<double> old = data.result();
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t p = 0; p < 5; ++p) data.a()(i, p) = 0;
  }
  data.run_well();
  for (std::size_t e = 0; e < old.size(); ++e) EXPECT_EQ(data.result()[e], 2 * old[e]);
}

TEST(Ozaki, PreparedOperandsKeepTheBits) {
  GemmCase test{
      .m = 20, .n = 15, .k = 90, .distribution = "phi:1", .scheme = "ozaki-fp16", .engine = "reference"};
  GemmDataOf<double> plain(test), prepared(test);
  plain.run_well();
  const PlanOf plan(prepared);
  kintsugi_prepared a = nullptr;
  ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, KINTSUGI_A, prepared.raw_a().data(), &a), KINTSUGI_SUCCESS);
  kintsugi_operands operands = prepared.operands();
  operands.a = nullptr;
  operands.prepared_a = a;
  EXPECT_EQ(kintsugi_plan_execute(nullptr, plan.plan, &operands), KINTSUGI_SUCCESS) << kintsugi_last_error();
  kintsugi_prepared_destroy(a);
  EXPECT_EQ(bits_of(plain.result()), bits_of(prepared.result()));
}

TEST(Ozaki, WrongParametersAreNamed) {
  for (const std::string parameter :
       {"mode=fp64", "slices=0", "slices=33", "fast=yes", "block=64", "k-block=-1", "k-block=65537", "bits=3",
        "mode=cr:slices=4", "mode=cr:fast=off", "mode=dp:mode=sp"}) {
    GemmData data(
        GemmCase{.m = 2, .n = 2, .k = 2, .scheme = "ozaki-fp16:" + parameter, .engine = "reference"});
    EXPECT_EQ(data.run(), KINTSUGI_BAD_SETTING) << parameter;
    EXPECT_THAT(kintsugi_last_error(), HasSubstr("does not take"));
  }
}

// 2^24 and 2^53 hold k products of slices; FP32 operands ask for FP32's accuracy, FP64 ones for theirs.
TEST(Ozaki, BitsOfASliceFitTheSums) {
  const auto bits = [](const char* scheme, core::OperandType type, std::int64_t k) {
    return core::fitted_program(*core::find_scheme(scheme), type, k).split_a.residual_exponent;
  };
  EXPECT_EQ(bits("ozaki-fp16", core::OperandType::f64, 1), 11);
  EXPECT_EQ(bits("ozaki-fp16", core::OperandType::f64, 1024), 7);
  EXPECT_EQ(bits("ozaki-fp16", core::OperandType::f64, 1025), 6);
  EXPECT_EQ(bits("ozaki-fp16", core::OperandType::f64, 1 << 24), 4);  // blocks of 65536
  EXPECT_EQ(bits("ozaki-fp16:k-block=1024", core::OperandType::f64, 1 << 24), 7);
  EXPECT_EQ(bits("ozaki-fp64", core::OperandType::f64, 2048), 21);
  EXPECT_EQ(bits("ozaki-fp64:k-block=64", core::OperandType::f64, std::int64_t{1} << 30), 16);
  using Mode = core::ErrorFree::Mode;
  EXPECT_EQ(core::fitted_program(*core::find_scheme("ozaki-fp16"), core::OperandType::f32, 9).error_free.mode,
            Mode::sp);
  EXPECT_EQ(core::fitted_program(*core::find_scheme("ozaki-fp16"), core::OperandType::f64, 9).error_free.mode,
            Mode::dp);
}

}  // namespace
}  // namespace kintsugi::test
