// `exact` with several checked candidates, which products of 2^28 multiply-adds and more have: whichever of
// them compute an element, its bits are those of the device's superaccumulator, which other tests compare
// with the host's.
#include <limits>

#include "gpu/calls/device_stream.hpp"

namespace kintsugi::test {
namespace {

// Multiply-adds of the shortest product with all candidates, and of one with two.
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

// Runs the case and the same data by the superaccumulator; returns the report of the case. `change` edits the
// operands first.
template <class T, class Change>
json expect_exact(const GemmCase& test, const DeviceRun& run, const Change& change) {
  SCOPED_TRACE(describe(test));
  GemmDataOf<T> data(test);
  GemmDataOf<T> wanted(superaccumulator_of(test));
  change(data);
  change(wanted);
  const Handle handle;
  DeviceGemm<T>(data, run).run_well(handle);
  DeviceGemm<T>(wanted, run).run_well();
  EXPECT_EQ(bits_of(data.result()), bits_of(wanted.result()));
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

// Wider data begin with more moduli, so that few elements are recomputed.
TEST(DeviceExactChain, SampleChoosesTheFirstCandidate) {
  std::size_t least = 0;
  for (const char* distribution : {"uniform", "phi:0.5", "phi:1", "phi:2", "phi:3", "phi:4"}) {
    const GemmCase test = exact_case(2048, 2049, 2050, distribution);
    const json report = expect_exact<double>(test);
    EXPECT_EQ(report.at("candidates").size(), 1U) << report;
    EXPECT_EQ(report.at("candidates").at(0).at("items"), 1) << report;
    EXPECT_GE(moduli_of(report), least) << report;
    least = moduli_of(report);
    EXPECT_LT(report.at("recomputed_elements"), 2048 * 2049 / 500) << report;
  }
  EXPECT_GT(least, moduli_of(expect_exact<double>(exact_case(2048, 2049, 2050, "uniform"))));
}

TEST(DeviceExactChain, BitsOfAllTypesAndLayouts) {
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

TEST(DeviceExactChain, AllCandidatesOfAllTypes) {
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

// Rows that no sample sees: of 2079 rows the last 31 lie beyond 32 shares of 64. A second candidate computes
// all of C again, where beta is 0, or only what is open.
template <class T>
void expect_second_candidate(GemmCase test, const DeviceRun& run = {}) {
  ASSERT_EQ(test.m, 2079);
  GemmCase wide = test;
  wide.distribution = "phi:8";
  const json report = expect_exact<T>(test, run, [&](GemmDataOf<T>& data) {
    GemmDataOf<T> other(wide);
    for (std::int64_t t = 0; t < test.batch; ++t) {
      for (std::int64_t p = 0; p < test.k; ++p) {
        for (std::int64_t i = 2048; i < 2079; ++i) data.a(t)(i, p) = other.a(t)(i, p);
      }
    }
  });
  EXPECT_EQ(report.at("candidates").at(0).at("items"), test.batch) << report;
  EXPECT_LT(report.at("recomputed_elements"), test.batch * 31 * test.n / 2) << report;
}

TEST(DeviceExactChain, OpenElementsBringTheNextCandidate) {
  for (const double beta : {0.0, 0.5}) {
    for (const double alpha : {1.0, -3.0}) {
      GemmCase test = exact_case(2079, 2100, 2000, "phi:0.5");
      test.alpha = alpha;
      test.beta = beta;
      ASSERT_GE(2079.0 * 2100 * 2000, with_all);
      expect_second_candidate<double>(test);
    }
  }
  GemmCase two = exact_case(2079, 500, 400, "phi:0.5");
  ASSERT_GE(2079.0 * 500 * 400, with_two);
  two.batch = 2;
  two.beta = 0.5;
  expect_second_candidate<double>(two, {.pointers = true});
}

// Blocks of C go through the candidates each for itself.
TEST(DeviceExactChain, BlocksOfAWorkspaceLimit) {
  for (const double beta : {0.0, 0.5}) {
    GemmCase test = exact_case(2079, 2100, 2000, "phi:1");
    test.beta = beta;
    for (const int megabytes : {20, 60, 150}) {
      test.workspace_limit = std::int64_t{megabytes} << 20;
      expect_second_candidate<double>(test);
    }
  }
}

TEST(DeviceExactChain, TilesOfOneBlock) {
  GemmCase test = exact_case(4500, 4200, 460, "phi:4");
  ASSERT_GE(4500.0 * 4200 * 460, with_all);
  expect_exact<double>(test);
  test.beta = 2;
  expect_exact<double>(test);
}

// NaN and infinities stay what the first candidate wrote, with beta C added once.
TEST(DeviceExactChain, SpecialValuesAreWrittenOnce) {
  for (const double beta : {0.0, 0.5}) {
    GemmCase test = exact_case(2079, 2100, 2000, "phi:0.5");
    test.beta = beta;
    const auto change = [](GemmDataOf<double>& data) {
      GemmCase wide = exact_case(2079, 2100, 2000, "phi:8");
      GemmDataOf<double> other(wide);
      for (std::int64_t p = 0; p < 2000; ++p) {
        for (std::int64_t i = 2048; i < 2079; ++i) data.a()(i, p) = other.a()(i, p);
      }
      data.a()(7, 5) = std::numeric_limits<double>::infinity();
      data.a()(2060, 9) = std::numeric_limits<double>::quiet_NaN();
      data.b()(11, 1300) = -std::numeric_limits<double>::infinity();
    };
    GemmDataOf<double> data(test);
    GemmDataOf<double> wanted(superaccumulator_of(test));
    change(data);
    change(wanted);
    DeviceGemm<double>(data).run_well();
    DeviceGemm<double>(wanted).run_well();
    std::int64_t misses = 0;
    for (std::int64_t j = 0; j < 2100; ++j) {
      for (std::int64_t i = 0; i < 2079; ++i) {
        const double x = data.c()(i, j);
        const double y = wanted.c()(i, j);
        misses += x == y || (std::isnan(x) && std::isnan(y)) ? 0 : 1;
      }
    }
    EXPECT_EQ(misses, 0);
  }
}

// Sums of few digits beside sums that need all of them, in the same words of open elements.
template <class T>
void expect_mixed_spans() {
  for (const double beta : {0.0, -1.5}) {
    // With the fewest elements that have to be open for the sums to differ: most of a third of the rows, or, where
    // B is wide or its elements are subnormal, those of some columns.
    for (const auto& [other, least_open] :
         {std::pair{"phi:8", 150 * 90 / 4}, {"span:100", 1000}, {"subnormal-mixed", 20}}) {
      GemmCase test = exact_case(150, 90, 300, other);
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

TEST(DeviceExactChain, DigitsOfEveryElement) {
  expect_mixed_spans<double>();
  expect_mixed_spans<std::complex<double>>();
}

// A captured call decides anew at every replay.
TEST(DeviceExactChain, ReplaysDecideByTheirOwnData) {
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
    GemmCase other = superaccumulator_of(test);
    other.distribution = distribution;
    GemmDataOf<double> wanted(other);
    const std::size_t bytes = data.raw_c().size() * sizeof(double);
    device_engine().copy_to_device({}, device.a().data(), wanted.raw_a().data(), bytes);
    device_engine().copy_to_device({}, device.b().data(), wanted.raw_b().data(), bytes);
    device_engine().copy_to_device({}, device.c().data(), wanted.raw_c().data(), bytes);
    call.replay();
    GemmDataOf<double> result(test);
    result.raw_c() = device.c().host();
    DeviceGemm<double>(wanted).run_well();
    EXPECT_EQ(bits_of(result.result()), bits_of(wanted.result()));
  }
  kintsugi_plan_destroy(plan);
}

}  // namespace
}  // namespace kintsugi::test
