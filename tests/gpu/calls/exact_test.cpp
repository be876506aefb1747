// Tests that the contract `exact` and the scheme superaccumulator on device memory have the bits of the
// host's superaccumulator.
#include <random>

#include "gpu/calls/device_stream.hpp"
#include "tools/measure/generators/random.hpp"
#include "verification/rounding_cases.hpp"

namespace kintsugi::test {
namespace {

// Accuracy and scheme of a call on the device.
constexpr std::pair<const char*, const char*> routes[] = {{"exact", ""}, {"", "superaccumulator"}};

template <class T>
constexpr bool is_double = std::is_same_v<core::RealOf<T>, double>;

// Returns the result of the host's superaccumulator.
template <class T>
std::vector<T> host_result(GemmCase test) {
  test.engine = "reference";
  test.scheme = "superaccumulator";
  test.accuracy.clear();
  test.policy.clear();
  GemmDataOf<T> data(test);
  data.run_well();
  return data.result();
}

// Reports the first element that differs, if any does.
template <class T>
void expect_same_elements(const std::vector<T>& got, const std::vector<T>& expected, std::int64_t rows) {
  ASSERT_EQ(got.size(), expected.size());
  std::int64_t misses = 0;
  std::size_t first = 0;
  for (std::size_t e = 0; e < got.size(); ++e) {
    if (std::memcmp(&got[e], &expected[e], sizeof(T)) == 0) continue;
    if (misses++ == 0) first = e;
  }
  if (misses == 0) return;
  const auto index = static_cast<std::int64_t>(first);
  ADD_FAILURE() << misses << " of " << got.size() << " elements differ; the first is row " << index % rows
                << ", column " << index / rows << ": " << std::hexfloat << std::real(got[first]) << " "
                << std::imag(got[first]) << " instead of " << std::real(expected[first]) << " "
                << std::imag(expected[first]);
}

template <class T>
void expect_host_bits(const GemmCase& test, const DeviceRun& run = {}) {
  SCOPED_TRACE(describe(test));
  GemmDataOf<T> data(test);
  DeviceGemm<T>(data, run).run_well();
  expect_same_elements(data.result(), host_result<T>(test), test.m);
}

template <class T>
GemmCase random_exact_case(std::mt19937_64& random) {
  constexpr const char* distributions[] = {"uniform",
                                           "uniform01",
                                           "phi:1",
                                           "phi:4",
                                           "type1",
                                           "type4",
                                           "offset:-100",
                                           "graded:40",
                                           "graded-inner:60",
                                           "diagonal:100",
                                           "span:30",
                                           "span:60",
                                           is_double<T> ? "span:2000" : "span:250",
                                           "cancellation:40",
                                           "cancellation:200",
                                           "subnormal",
                                           "subnormal-mixed",
                                           "integer:9",
                                           "powers-of-two:60"};
  constexpr double scalars[] = {1, 1, -1, 0.3, -7e8, 1.7e-33};
  GemmCase test = random_shape(random, 140, 70, below(random, 3) == 0 ? 600 : 70);
  test.batch = 1 + below(random, 3);
  test.alpha = scalars[below(random, 6)];
  test.beta = below(random, 2) == 0 ? 0 : scalars[below(random, 6)];
  if (core::is_complex<T> && below(random, 2) == 0) {
    test.alpha_im = scalars[below(random, 6)];
    test.beta_im = below(random, 2) == 0 ? 0 : scalars[below(random, 6)];
  }
  test.distribution = distributions[below(random, std::size(distributions))];
  test.engine = "cuda";
  return test;
}

template <class T>
class DeviceExact : public testing::Test {};
using EveryType = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(DeviceExact, EveryType);

template <class T>
void sweep_exact(int cases) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int i = 0; i < cases && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("generator " + std::to_string(seed));
    GemmCase test = random_exact_case<T>(random);
    const auto& [accuracy, scheme] = routes[i % 2];
    test.accuracy = accuracy;
    test.scheme = scheme;
    expect_host_bits<T>(
        test, {.offset = random() % 2, .pointers = random() % 2 == 0, .device_scalars = random() % 2 == 0});
  }
}

TYPED_TEST(DeviceExact, BitsEqualTheHostsInSmallCases) { sweep_exact<TypeParam>(12); }
TYPED_TEST(DeviceExact, BitsOfManyCasesEqualTheHosts) { sweep_exact<TypeParam>(80); }

// Sizes are multiples of the tiles of recombinations and of cuBLAS, and one row or column more or less;
// blocks of few columns have fewer than a thread block has warps. Where spans are wide, elements depend on
// their own vectors' bounds.
TYPED_TEST(DeviceExact, EdgesOfTilesHaveTheHostsBits) {
  for (const auto& [m, n] :
       {std::pair(127, 33), std::pair(128, 32), std::pair(129, 31), std::pair(257, 17), std::pair(1, 65),
        std::pair(300, 1), std::pair(131, 2), std::pair(131, 3), std::pair(131, 5), std::pair(9, 129)}) {
    for (const auto& [accuracy, scheme] : routes) {
      for (const double beta : {0.0, -1.0}) {
        for (const auto layout : {KINTSUGI_COLUMN_MAJOR, KINTSUGI_ROW_MAJOR}) {
          for (const char* distribution :
               {"phi:3", "span:60", is_double<TypeParam> ? "span:355" : "span:90"}) {
            GemmCase test{.m = m, .n = n, .k = 33, .layout = layout, .pad_c = 1, .beta = beta};
            test.distribution = distribution;
            test.scheme = scheme;
            test.engine = "cuda";
            test.accuracy = accuracy;
            expect_host_bits<TypeParam>(test);
          }
        }
      }
    }
  }
}

// Sums have carries between digits, and lengths on both sides of a k-block. Few long sums have no residues,
// many have.
TYPED_TEST(DeviceExact, LongSumsHaveTheHostsBits) {
  for (const std::int64_t k : {4097, 65536, 70001}) {
    for (const auto& [accuracy, scheme] : routes) {
      expect_host_bits<TypeParam>({.m = 5,
                                   .n = 3,
                                   .k = k,
                                   .op_a = KINTSUGI_OP_T,
                                   .distribution = "uniform01",
                                   .scheme = scheme,
                                   .engine = "cuda",
                                   .accuracy = accuracy});
    }
  }
  expect_host_bits<TypeParam>(
      {.m = 40, .n = 30, .k = 66000, .distribution = "uniform01", .engine = "cuda", .accuracy = "exact"});
}

// ------------------------------------------------------------------ known answers

template <class T>
void expect_known_answers(const std::string& family, const RoundingProblem<T>& problem) {
  for (const auto& [accuracy, scheme] : routes) {
    SCOPED_TRACE(family + " by " + accuracy + scheme);
    const DeviceArray<T> a(problem.a), b(problem.b), c(problem.c);
    kintsugi_problem call = KINTSUGI_PROBLEM_INIT;
    call.m = call.lda = call.ldc = problem.m;
    call.n = problem.n;
    call.k = call.ldb = problem.k;
    call.type_a = call.type_b = call.type_c = call.type_scalar = type_of<T>();
    call.memory = KINTSUGI_DEVICE;
    kintsugi_options options = KINTSUGI_OPTIONS_INIT;
    options.accuracy = *accuracy == 0 ? nullptr : accuracy;
    options.scheme = *scheme == 0 ? nullptr : scheme;
    kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
    operands.alpha = &problem.alpha;
    operands.beta = &problem.beta;
    operands.a = a.data();
    operands.b = b.data();
    operands.c = c.data();
    ASSERT_EQ(kintsugi_gemm(nullptr, &call, &options, &operands), KINTSUGI_SUCCESS) << kintsugi_last_error();
    expect_same_elements(c.host(), problem.expected, problem.m);
  }
}

// Checks products with known answers: ties, subnormal results, the edge of overflow, terms up to 2^-1900
// below a tie, and sums and old elements that cancel.
template <class T>
void expect_constructed_roundings(int rounds) {
  const std::uint64_t seed = std::random_device{}();
  measure::Random random(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr int far = is_double<T> ? 1900 : 200;
  for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
    for (const bool scalars : {false, true}) {
      expect_known_answers("narrow", ConstructedRounding<T>(random, 200, 7, 40, false, scalars).problem());
      expect_known_answers("2^-200 below",
                           ConstructedRounding<T>(random, 200, 7, 200, false, scalars).problem());
      expect_known_answers("any range", ConstructedRounding<T>(random, 200, 7, far, true, scalars).problem());
    }
    expect_known_answers("ties of alpha and beta", TiesOfScalars<T>(random, 200, 7).problem());
  }
}

TEST(DeviceRounding, KnownAnswersAreGivenInSmallCases) {
  expect_constructed_roundings<float>(1);
  expect_constructed_roundings<double>(1);
}
TEST(DeviceRounding, KnownAnswersAreGivenInManyCases) {
  expect_constructed_roundings<float>(20);
  expect_constructed_roundings<double>(20);
}

// Partial sums overflow double and cancel.
TEST(DeviceRounding, OverflowThatCancelsIsExactInSmallCases) {
  for (const auto& [accuracy, scheme] : routes) {
    GemmCase test{.m = 3, .n = 2, .k = 4, .scheme = scheme, .engine = "cuda", .accuracy = accuracy};
    GemmDataOf<double> data(test);
    for (std::int64_t p = 0; p < 4; ++p) {
      for (std::int64_t i = 0; i < 3; ++i) data.a()(i, p) = p % 2 == 0 ? 1e308 : -1e308;
      for (std::int64_t j = 0; j < 2; ++j) data.b()(p, j) = p < 2 ? 2 : 1e300;
    }
    data.a()(1, 2) = std::numeric_limits<double>::denorm_min();
    data.a()(1, 3) = 0;
    DeviceGemm<double>(data).run_well();
    EXPECT_EQ(bits_of(data.result())[0], 0U) << data.c()(0, 0);
    EXPECT_EQ(data.c()(1, 0), std::numeric_limits<double>::denorm_min() * 1e300);
    EXPECT_EQ(data.c()(2, 1), 0);
  }
}

// ------------------------------------------------------------------ special values

// Returns for each part 2 for NaN, the sign of an infinity, and 0 for a finite number.
template <class T>
std::vector<int> kinds_of(const std::vector<T>& values) {
  std::vector<int> kinds;
  const auto add = [&](auto x) { kinds.push_back(std::isnan(x) ? 2 : std::isinf(x) ? (x > 0 ? 1 : -1) : 0); };
  for (const T& x : values) {
    add(std::real(x));
    add(std::imag(x));
  }
  return kinds;
}

template <class T>
void write_special_values(GemmDataOf<T>& data, int round) {
  using Limits = std::numeric_limits<core::RealOf<T>>;
  const T values[] = {T(Limits::quiet_NaN()), T(Limits::infinity()), T(-Limits::infinity()), T(0)};
  for (int s = 0; s < 6; ++s) {
    const MatrixView<T> view = s % 2 == 0 ? data.a() : data.b();
    view((7 * s + round) % view.rows, (11 * s + 3 * round) % view.columns) = values[(s + round) % 4];
  }
}

TYPED_TEST(DeviceExact, SpecialValuesAreThoseOfTheHostInSmallCases) {
  std::mt19937_64 random(std::random_device{}());
  for (int round = 0; round < 12; ++round) {
    GemmCase test = random_exact_case<TypeParam>(random);
    const auto& [accuracy, scheme] = routes[round % 2];
    test.accuracy = accuracy;
    test.scheme = scheme;
    test.distribution = round % 3 == 0 ? "span:100" : "uniform";
    test.batch = 1;
    SCOPED_TRACE(describe(test));
    GemmDataOf<TypeParam> data(test);
    write_special_values(data, round);
    DeviceGemm<TypeParam>(data).run_well();
    test.engine = "reference";
    GemmDataOf<TypeParam> host(test);
    write_special_values(host, round);
    host.run_well();
    ASSERT_EQ(kinds_of(data.result()), kinds_of(host.result()));
  }
}

// Scalars are NaN, infinite or 0, and some old elements NaN or infinite.
TYPED_TEST(DeviceExact, SpecialScalarsGiveTheHostsClassesInSmallCases) {
  using Real = core::RealOf<TypeParam>;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double scalars[] = {std::nan(""), infinity, -infinity, 0, 1, 0.75};
  for (const auto& [accuracy, scheme] : routes) {
    for (const double alpha : scalars) {
      for (const double beta : scalars) {
        GemmCase test{.m = 9,
                      .n = 4,
                      .k = 6,
                      .alpha = alpha,
                      .beta = beta,
                      .scheme = scheme,
                      .engine = "cuda",
                      .accuracy = accuracy};
        const auto run = [&](const char* engine) {
          test.engine = engine;
          GemmDataOf<TypeParam> data(test);
          data.c()(0, 0) = TypeParam(std::numeric_limits<Real>::quiet_NaN());
          data.c()(1, 2) = TypeParam(std::numeric_limits<Real>::infinity());
          for (std::int64_t p = 0; p < 6; ++p) data.a()(3, p) = 0;
          if (std::string(engine) == "cuda") {
            DeviceGemm<TypeParam>(data, {.device_scalars = true}).run_well();
          } else {
            data.run_well();
          }
          return kinds_of(data.result());
        };
        EXPECT_EQ(run("cuda"), run("reference"))
            << "alpha " << alpha << ", beta " << beta << accuracy << scheme;
      }
    }
  }
}

// ------------------------------------------------------------------ limits, reports, host matrices

TEST(DeviceExactCalls, BitsDoNotDependOnTheWorkspaceLimit) {
  const GemmCase test{.m = 8300,
                      .n = 130,
                      .k = 70,
                      .op_a = KINTSUGI_OP_T,
                      .beta = 0.5,
                      .distribution = "phi:3",
                      .engine = "cuda",
                      .accuracy = "exact"};
  const auto bits = device_bits<double>(test);
  GemmDataOf<double> data(test);
  DeviceGemm<double> device(data);
  const auto problem = device.problem();
  const auto options = device.options();
  kintsugi_plan plan = nullptr;
  std::size_t unlimited = 0;
  ASSERT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &plan), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  kintsugi_plan_workspace_size(plan, &unlimited);
  kintsugi_plan_destroy(plan);
  GemmCase limited = test;
  limited.workspace_limit = static_cast<std::int64_t>(unlimited - 1);
  EXPECT_EQ(device_bits<double>(limited), bits);
  EXPECT_EQ(device_bits<double>(test), bits) << "another run";
}

// No element is open for narrow integers, most are for a wide dynamic range; the superaccumulator recomputes
// none.
TEST(DeviceExactCalls, ReportsCountRecomputedElementsInSmallCases) {
  struct Case {
    const char* distribution;
    const char* accuracy;
    const char* scheme;
    std::int64_t recomputed;
  };
  for (const Case& expected :
       {Case{"integer:9", "exact", "", 0}, Case{"integer:9", "1e-14", "", 0}, Case{"uniform", "fp64", "", 0},
        Case{"span:2000", "", "superaccumulator", 0}}) {
    GemmCase test{.m = 150,
                  .n = 40,
                  .k = 60,
                  .batch = 2,
                  .distribution = expected.distribution,
                  .scheme = expected.scheme,
                  .engine = "cuda",
                  .accuracy = expected.accuracy};
    if (test.scheme.empty()) test.policy = "emulate";
    SCOPED_TRACE(describe(test));
    const Handle handle;
    GemmDataOf<double> data(test);
    DeviceGemm<double>(data).run_well(handle);
    const json report = handle.report();
    EXPECT_EQ(report.at("recomputed_elements"), expected.recomputed) << report;
    EXPECT_EQ(report["candidates"][0]["items"], 2) << report;
  }
  const Handle handle;
  GemmCase test{
      .m = 150, .n = 40, .k = 60, .distribution = "span:2000", .engine = "cuda", .accuracy = "exact"};
  GemmDataOf<double> data(test);
  DeviceGemm<double>(data).run_well(handle);
  EXPECT_GT(handle.report().at("recomputed_elements"), 150 * 40 / 2) << handle.report();
}

TEST(DeviceExactCalls, HostMatricesHaveTheHostsBitsInSmallCases) {
  for (const auto& [accuracy, scheme] : routes) {
    const GemmCase test{.m = 65,
                        .n = 33,
                        .k = 130,
                        .op_a = KINTSUGI_OP_T,
                        .layout = KINTSUGI_ROW_MAJOR,
                        .pad_c = 3,
                        .batch = 2,
                        .alpha = 0.5,
                        .beta = 2,
                        .distribution = "phi:4",
                        .scheme = scheme,
                        .engine = "cuda",
                        .accuracy = accuracy};
    SCOPED_TRACE(describe(test));
    GemmDataOf<double> data(test);
    data.run_well();
    expect_same_elements(data.result(), host_result<double>(test), test.m);
  }
}

}  // namespace
}  // namespace kintsugi::test
