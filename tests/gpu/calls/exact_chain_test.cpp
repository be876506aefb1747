// Tests `exact` with several checked candidates, as products of 2^28 multiply-adds and more have: whichever
// of them computes an element, its bits are those of the device's superaccumulator, which other tests compare
// with the host's.
#include <limits>

#include "gpu/calls/device_stream.hpp"

namespace kintsugi::test {
namespace {

// Fewest multiply-adds of products with all candidates, and of those with two.
constexpr double with_all = 0x1p33;
constexpr double with_two = 0x1p28;

GemmCase exact_case(std::int64_t m, std::int64_t n, std::int64_t k, const std::string& distribution) {
  return {.m = m, .n = n, .k = k, .distribution = distribution, .engine = "cuda", .accuracy = "exact"};
}

GemmCase superaccumulator_of(GemmCase test) {
  test.accuracy.clear();
  test.scheme = "superaccumulator";
  return test;
}

// Expects the bits of the superaccumulator on the same data, which `change` edits first. Returns the report.
template <class T, class Change>
json expect_exact(const GemmCase& test, const DeviceRun& run, const Change& change) {
  SCOPED_TRACE(describe(test));
  GemmDataOf<T> data(test);
  GemmDataOf<T> by_superaccumulator(superaccumulator_of(test));
  change(data);
  change(by_superaccumulator);
  const Handle handle;
  DeviceGemm<T>(data, run).run_well(handle);
  DeviceGemm<T>(by_superaccumulator, run).run_well();
  EXPECT_EQ(bits_of(data.result()), bits_of(by_superaccumulator.result()));
  return handle.report();
}
template <class T>
json expect_exact(const GemmCase& test, const DeviceRun& run = {}) {
  return expect_exact<T>(test, run, [](GemmDataOf<T>&) {});
}

std::size_t moduli_of(const json& report) {
  const std::string scheme = report.at("candidates").at(0).at("scheme");
  return std::stoul(scheme.substr(scheme.find("moduli=") + 7));
}

// Data of a wider range begin with more moduli, so that few elements are recomputed.
TEST(DeviceExactChain, ASampleSelectsTheFirstCandidate) {
  std::size_t moduli_before = 0;
  for (const char* distribution : {"uniform", "phi:0.5", "phi:1", "phi:2", "phi:3", "phi:4"}) {
    const GemmCase test = exact_case(2048, 2049, 2050, distribution);
    const json report = expect_exact<double>(test);
    EXPECT_EQ(report.at("candidates").size(), 1U) << report;
    EXPECT_EQ(report.at("candidates").at(0).at("items"), 1) << report;
    EXPECT_GE(moduli_of(report), moduli_before) << report;
    moduli_before = moduli_of(report);
    EXPECT_LT(report.at("recomputed_elements"), 2048 * 2049 / 500) << report;
  }
  EXPECT_GT(moduli_before, moduli_of(expect_exact<double>(exact_case(2048, 2049, 2050, "uniform"))));
}

TEST(DeviceExactChain, TwoCandidatesKeepTheBitsOfAllTypesAndLayouts) {
  for (const char* distribution : {"phi:0.5", "phi:4", "phi:8", "span:60", "graded-inner:60"}) {
    for (const double beta : {0.0, -0.75}) {
      GemmCase test = exact_case(700, 801, 903, distribution);  // two candidates
      test.beta = beta;
      test.pad_c = 1;
      test.op_a = KINTSUGI_OP_T;
      expect_exact<float>(test);
      expect_exact<double>(test, {.device_scalars = true});
      test.layout = KINTSUGI_ROW_MAJOR;
      test.op_b = KINTSUGI_OP_C;
      test.alpha = 1.5;
      expect_exact<double>(test);
      expect_exact<std::complex<double>>(test);
      expect_exact<std::complex<float>>(test);
    }
  }
}

TEST(DeviceExactChain, AllCandidatesKeepTheBitsOfAllTypes) {
  for (const char* distribution : {"phi:2", "phi:6"}) {
    for (const double beta : {0.0, 0.5}) {
      GemmCase test = exact_case(1500, 1400, 4100, distribution);
      test.beta = beta;
      ASSERT_GE(1500.0 * 1400 * 4100, with_all);
      expect_exact<float>(test);
      expect_exact<double>(test);
      test.m = 700;
      test.n = 750;
      ASSERT_GE(4.0 * 700 * 750 * 4100, with_all);
      expect_exact<std::complex<double>>(test);
    }
  }
}

// The last 31 of 2079 rows have a wider range and are not sampled: the sample takes one of every 64 rows, 32
// of them. A second candidate computes all of C again if beta is 0, and else the open elements.
template <class T>
void expect_second_candidate(GemmCase test, const DeviceRun& run = {}) {
  ASSERT_EQ(test.m, 2079);
  GemmCase wide = test;
  wide.distribution = "phi:8";
  const json report = expect_exact<T>(test, run, [&](GemmDataOf<T>& data) {
    GemmDataOf<T> wide_data(wide);
    for (std::int64_t t = 0; t < test.batch; ++t) {
      for (std::int64_t p = 0; p < test.k; ++p) {
        for (std::int64_t i = 2048; i < 2079; ++i) data.a(t)(i, p) = wide_data.a(t)(i, p);
      }
    }
  });
  EXPECT_EQ(report.at("candidates").at(0).at("items"), test.batch) << report;
  EXPECT_LT(report.at("recomputed_elements"), test.batch * 31 * test.n / 2) << report;
}

TEST(DeviceExactChain, OpenElementsSelectTheNextCandidate) {
  for (const double beta : {0.0, 0.5}) {
    for (const double alpha : {1.0, -3.0}) {
      GemmCase test = exact_case(2079, 2100, 2000, "phi:0.5");
      test.alpha = alpha;
      test.beta = beta;
      ASSERT_GE(2079.0 * 2100 * 2000, with_all);
      expect_second_candidate<double>(test);
    }
  }
  GemmCase two_candidates = exact_case(2079, 500, 400, "phi:0.5");
  ASSERT_GE(2079.0 * 500 * 400, with_two);
  two_candidates.batch = 2;
  two_candidates.beta = 0.5;
  expect_second_candidate<double>(two_candidates, {.pointers = true});
}

// Rows of A and columns of B whose products are ties of two doubles, next to ties, or cancel to zero or to
// the last bits of their sums.
void add_hard_vectors(GemmDataOf<double>& data, std::int64_t k) {
  const double heads[] = {0x1p53, 0x1p53 + 2, -0x1p53, 0x1p60, 1, 0x1p53, 0x1p-30, 0x1p53};
  const double tails[] = {1, 1, 3, 0x1p-40, -1, -1, 0x1p-83, 1 - 0x1p-53};
  for (std::int64_t v = 0; v < 16; ++v) {
    for (std::int64_t p = 0; p < k; ++p) {
      data.a()(v, p) = p == 0 ? heads[v % 8] : p == k - 1 ? tails[v % 8] : 0;
      data.b()(p, v) = p == 0 || p == k - 1 ? (v < 8 ? 1 : 0.5) : 0;
    }
  }
  for (std::int64_t p = 0; p < k / 2; ++p) {  // row 20 times column 20 is 0, row 20 times column 21 nearly
    data.a()(20, 2 * p + 1) = data.a()(20, 2 * p);
    data.b()(2 * p + 1, 20) = -data.b()(2 * p, 20);
    data.b()(2 * p + 1, 21) = -data.b()(2 * p, 21) * (1 + 0x1p-50);
  }
}

// AB of FP64 elements is recombined by sums of digits, in any layout of C and with edges of all kinds.
TEST(DeviceExactChain, SumsOfDigitsKeepTheBits) {
  for (const char* distribution : {"uniform", "phi:0.5", "phi:2", "phi:4", "integer:127", "span:40"}) {
    for (const auto& [m, n, k] : {std::array{700, 801, 1000}, {129, 2063, 1024}, {2050, 1027, 130}}) {
      for (const auto layout : {KINTSUGI_COLUMN_MAJOR, KINTSUGI_ROW_MAJOR}) {
        GemmCase test = exact_case(m, n, k, distribution);
        test.layout = layout;
        test.beta = 0;
        test.pad_c = m == 700 ? 0 : 3;
        const auto change = [&](GemmDataOf<double>& data) { add_hard_vectors(data, k); };
        expect_exact<double>(test, {}, change);
      }
    }
  }
}

// Every block of C has its own candidates.
TEST(DeviceExactChain, BlocksOfAWorkspaceLimitKeepTheBits) {
  for (const double beta : {0.0, 0.5}) {
    GemmCase test = exact_case(2079, 2100, 2000, "phi:1");
    test.beta = beta;
    for (const int megabytes : {20, 60, 150}) {
      test.workspace_limit = std::int64_t{megabytes} << 20;
      expect_second_candidate<double>(test);
    }
  }
}

TEST(DeviceExactChain, SeveralTilesOfABlockKeepTheBits) {
  GemmCase test = exact_case(4500, 4200, 460, "phi:4");
  ASSERT_GE(4500.0 * 4200 * 460, with_all);
  expect_exact<double>(test);
  test.beta = 2;
  expect_exact<double>(test);
}

// Later candidates do not write NaN and infinities again, which would add beta C twice.
TEST(DeviceExactChain, SpecialValuesAreWrittenOnce) {
  for (const double beta : {0.0, 0.5}) {
    GemmCase test = exact_case(2079, 2100, 2000, "phi:0.5");
    test.beta = beta;
    const auto change = [](GemmDataOf<double>& data) {
      GemmCase wide = exact_case(2079, 2100, 2000, "phi:8");
      GemmDataOf<double> wide_data(wide);
      for (std::int64_t p = 0; p < 2000; ++p) {
        for (std::int64_t i = 2048; i < 2079; ++i) data.a()(i, p) = wide_data.a()(i, p);
      }
      data.a()(7, 5) = std::numeric_limits<double>::infinity();
      data.a()(2060, 9) = std::numeric_limits<double>::quiet_NaN();
      data.b()(11, 1300) = -std::numeric_limits<double>::infinity();
    };
    GemmDataOf<double> data(test);
    GemmDataOf<double> by_superaccumulator(superaccumulator_of(test));
    change(data);
    change(by_superaccumulator);
    DeviceGemm<double>(data).run_well();
    DeviceGemm<double>(by_superaccumulator).run_well();
    std::int64_t misses = 0;
    for (std::int64_t j = 0; j < 2100; ++j) {
      for (std::int64_t i = 0; i < 2079; ++i) {
        const double x = data.c()(i, j);
        const double y = by_superaccumulator.c()(i, j);
        misses += x == y || (std::isnan(x) && std::isnan(y)) ? 0 : 1;
      }
    }
    EXPECT_EQ(misses, 0);
  }
}

// Elements whose exact sums have few digits and elements that need all digits share a word of open elements.
template <class T>
void expect_mixed_ranges() {
  for (const double beta : {0.0, -1.5}) {
    // Each distribution with the number of elements that must be open at least: most elements of every third
    // row, or fewer where B has a wide range or subnormal elements: scales by norms leave few of those open.
    for (const auto& [wide_data, least_open] :
         {std::pair{"phi:8", 150 * 90 / 4}, {"span:100", 1000}, {"subnormal-mixed", 10}}) {
      GemmCase test = exact_case(150, 90, 300, wide_data);
      test.beta = beta;
      GemmCase wide = test;
      wide.distribution = "span:1500";
      const json report = expect_exact<T>(test, {}, [&](GemmDataOf<T>& data) {
        GemmDataOf<T> rows(wide);
        for (std::int64_t i = 0; i < test.m; ++i) {
          for (std::int64_t p = 0; p < test.k && i % 3 == 1; ++p) data.a()(i, p) = rows.a()(i, p);
        }
      });
      EXPECT_GT(report.at("recomputed_elements"), least_open) << report;
    }
  }
}

TEST(DeviceExactChain, ElementsWithSumsOfDifferentLengthKeepTheBits) {
  expect_mixed_ranges<double>();
  expect_mixed_ranges<std::complex<double>>();
}

TEST(DeviceExactChain, ReplaysSelectByTheirOwnData) {
  GemmCase test = exact_case(2048, 2048, 2048, "phi:0.5");
  test.beta = 0.5;
  const Handle handle;
  const Stream stream;
  GemmDataOf<double> data(test);
  DeviceGemm<double> device(data, {.queue = stream.queue()});
  const kintsugi_problem problem = device.problem();
  const kintsugi_options options = device.options();
  const kintsugi_operands operands = device.operands();
  kintsugi_plan plan = nullptr;
  ASSERT_EQ(kintsugi_plan_create(handle, &problem, &options, &plan), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  const CapturedCall call(stream, handle, plan, operands);
  for (const char* distribution : {"phi:4", "uniform", "phi:8", "phi:1", "phi:4"}) {
    SCOPED_TRACE(distribution);
    GemmCase wide_data = superaccumulator_of(test);
    wide_data.distribution = distribution;
    GemmDataOf<double> by_superaccumulator(wide_data);
    const std::size_t bytes = data.raw_c().size() * sizeof(double);
    core::cuda::copy_to_device({}, device.a().data(), by_superaccumulator.raw_a().data(), bytes);
    core::cuda::copy_to_device({}, device.b().data(), by_superaccumulator.raw_b().data(), bytes);
    core::cuda::copy_to_device({}, device.c().data(), by_superaccumulator.raw_c().data(), bytes);
    call.replay();
    GemmDataOf<double> result(test);
    result.raw_c() = device.c().host();
    DeviceGemm<double>(by_superaccumulator).run_well();
    EXPECT_EQ(bits_of(result.result()), bits_of(by_superaccumulator.result()));
  }
  kintsugi_plan_destroy(plan);
}

}  // namespace
}  // namespace kintsugi::test
