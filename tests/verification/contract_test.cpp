// Tests contracts on all distributions of tools/measure: whatever program the plan takes, |C - R| is at most
// the contract's coefficient times |alpha||A||B| + |beta C|, plus one last rounding.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <type_traits>

#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/routes.hpp"
#include "tools/measure/generators/generators.hpp"

namespace kintsugi::test {
namespace {

template <class T>
constexpr double unit_roundoff = std::is_same_v<T, float> ? 0x1p-24 : 0x1p-53;

constexpr const char* distributions_of_all[] = {"uniform",
                                                "tile-outlier:0.1",
                                                "uniform01",
                                                "normal",
                                                "language-model",
                                                "phi:0.5",
                                                "phi:2",
                                                "phi:4",
                                                "type1",
                                                "type2",
                                                "type3",
                                                "type4",
                                                "offset:-60",
                                                "offset:60",
                                                "graded:40",
                                                "graded:-60",
                                                "graded-inner:60",
                                                "diagonal:40",
                                                "diagonal:200",
                                                "crossed:30",
                                                "crossed:7",
                                                "span:16",
                                                "span:40",
                                                "span:90",
                                                "cancellation:20",
                                                "cancellation:60",
                                                "subnormal",
                                                "subnormal-mixed",
                                                "outlier:40",
                                                "zeros:0.5",
                                                "integer:127",
                                                "integer:16000000",
                                                "power-of-two:-9",
                                                "powers-of-two:40",
                                                "gram-diagonal:9",
                                                "gram-diagonal:90",
                                                "offset-nonnegative:-60"};
constexpr const char* distributions_of_fp64[] = {
    "graded:-500",        "graded:-1000", "graded:1000", "graded-inner:1000", "diagonal:1500",
    "gram-diagonal:1500", "span:1000",    "span:2000",   "crossed:300",       "offset:-540"};

template <class T>
std::vector<std::string> distributions() {
  std::vector<std::string> all(std::begin(distributions_of_all), std::end(distributions_of_all));
  if (std::is_same_v<T, double>)
    all.insert(all.end(), std::begin(distributions_of_fp64), std::end(distributions_of_fp64));
  return all;
}

struct Request {
  std::string accuracy, policy;
};

template <class T>
double coefficient_of(const Request& request, std::int64_t k) {
  if (!request.accuracy.empty()) return std::stod(request.accuracy);
  return static_cast<double>(k + 8) * unit_roundoff<T>;
}

// Returns the largest error over allowed error of all elements.
template <class T>
double worst_ratio(GemmDataOf<T>& data, const std::vector<T>& before, double coefficient, bool natively) {
  constexpr double smallest = std::numeric_limits<T>::denorm_min();
  // Products and sums of native arithmetic may underflow, each by half of the smallest number at most.
  const double underflow = natively ? static_cast<double>(data.test().k + 2) * smallest : smallest;
  double worst = 0;
  for (const measure::ElementError& element : element_errors(data, before)) {
    // Sums that may overflow on the way have no bound; special_placement_test.cpp tests them.
    if (element.absolute > static_cast<double>(std::numeric_limits<T>::max()) / 4) continue;
    const double allowed =
        coefficient * element.absolute + unit_roundoff<T> * std::abs(element.exact) + underflow;
    worst = std::max(worst, std::abs(element.error) / allowed);
  }
  return worst;
}

template <class T>
class Contracts : public testing::Test {
 protected:
  static std::vector<Request> all_requests() {
    const char* tolerance = std::is_same_v<T, float> ? "1e-5" : "1e-10";
    return {{"", "auto"}, {"", "emulate"}, {"", "native"}, {tolerance, "emulate"}, {tolerance, "auto"}};
  }

  void sweep(const std::string& engine) {
    const Handle handle;
    int trial = 0;
    for (const std::string& distribution : distributions<T>()) {
      for (const std::int64_t k : {1, 2, 5, 16, 66, 200, 700}) {
        if (!thorough && k > 66) continue;
        for (const Request& request : all_requests()) {
          GemmCase test{.m = 12, .n = 9, .k = k, .distribution = distribution, .engine = engine};
          test.seed = static_cast<std::uint64_t>(++trial);
          test.accuracy = request.accuracy;
          test.policy = request.policy;
          test.alpha = trial % 3 == 0 ? -0.3 : 1;
          test.beta = trial % 4 == 0 ? 1.7 : 0;
          judge(test, coefficient_of<T>(request, k), handle);
        }
      }
    }
  }

  // Number of calls that succeeded, and of those that an emulation computed.
  int ran_ = 0;
  int emulated_ = 0;

 private:
  void judge(const GemmCase& test, double coefficient, const Handle& handle) {
    GemmDataOf<T> data(test);
    const std::vector<T> before = data.raw_c();
    const kintsugi_status status = data.run(handle);
    if (status == KINTSUGI_CONTRACT_UNREACHABLE) return;  // a call may refuse a contract that it cannot keep
    ASSERT_EQ(status, KINTSUGI_SUCCESS) << kintsugi_last_error();
    const json done = handle.report();
    bool natively = false;
    std::string scheme;
    for (const auto& candidate : done.at("candidates")) {
      if (candidate.at("items") > 0) scheme = candidate.at("scheme");
    }
    natively = scheme == "native";
    ++ran_;
    emulated_ += natively ? 0 : 1;
    EXPECT_LE(worst_ratio(data, before, coefficient, natively), 1)
        << test.distribution << " k " << test.k << " " << test.accuracy << " " << test.policy << " on "
        << test.engine << " by " << scheme << ", alpha " << test.alpha << " beta " << test.beta << " seed "
        << test.seed;
  }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Contracts, Types);

TYPED_TEST(Contracts, HoldOnTheReferenceEngine) {
  this->sweep("reference");
  EXPECT_GT(this->ran_, thorough ? 700 : 300);
  EXPECT_GT(this->emulated_, thorough ? 200 : 80);
}

TYPED_TEST(Contracts, HoldOnTheCpuEngine) {
  if (!has_cpu_engine()) GTEST_SKIP() << "no cpu engine here";
  this->sweep("cpu");
  EXPECT_GT(this->ran_, thorough ? 700 : 300);
  EXPECT_GT(this->emulated_, thorough ? 200 : 80);
}

// Intended failure: an element that is wrong by more than its contract is seen.
TYPED_TEST(Contracts, ViolationsAreSeen) {
  GemmDataOf<TypeParam> data(GemmCase{.m = 3, .n = 3, .k = 20, .engine = "reference", .policy = "native"});
  data.run_well();
  data.c()(1, 2) *= static_cast<TypeParam>(1 + 1000 * unit_roundoff<TypeParam>);
  EXPECT_GT(worst_ratio(data, {}, 28 * unit_roundoff<TypeParam>, true), 1);
}

// If this fails, add the new distribution to distributions_of_all.
TEST(Contract, EveryDistributionIsInTheSweep) {
  std::string swept = " ";
  for (const std::string& name : distributions<double>()) swept += name + " ";
  for (const std::string& line : measure::distribution_forms()) {
    const std::string name = line.substr(0, line.find_first_of(": "));
    if (name.starts_with("type") || name == "special") continue;
    EXPECT_NE(swept.find(" " + name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace kintsugi::test
