// Compares errors of the policy emulate on the engine cpu with those of OpenBLAS on the same operands.
#include <gtest/gtest.h>

#include <tuple>

#include "engines/registry.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::test {
namespace {

class NativeErrors : public testing::TestWithParam<std::tuple<const char*, const char*, std::int64_t>> {};

// A measured goal, not a bound: at most 1.3 times OpenBLAS's Frobenius error, sums of one sign included. On
// an EPYC with AVX-512, OpenBLAS 0.3.21 with its kernel SkylakeX and one thread, these seeds gave at most
// 0.58 times for emulations and 0.25 for the native product in a fixed order; at k = 2^18, which takes too
// long for a test, 0.26 and 0.08.
TEST_P(NativeErrors, AreAtMostThirtyPercentAboveOpenBlas) {
  if (!core::find_engine("cpu")->unavailable_reason().empty()) GTEST_SKIP() << "no engine cpu";
  const auto& [accumulator, distribution, k] = GetParam();
  GemmCase test{
      .m = 32, .n = 32, .k = k, .distribution = distribution, .seed = 2026, .engine = "cpu", .threads = 1};
  test.policy = "native";
  const double vendor = frobenius_of(test);
  test.policy = "emulate";
  test.accumulator = accumulator;
  GemmData data(test);
  const Handle handle;
  data.run_well(handle);
  const bool emulates = std::string(accumulator) == "fp32";
  ASSERT_EQ(candidates(handle.report()).front() == "native", !emulates);
  const double ours = frobenius_error(element_errors(data));
  EXPECT_LE(ours, 1.3 * vendor);
  RecordProperty("ratio", std::to_string(ours / vendor));
}

// No emulation of FP32 has the accumulator fp64, so with it the native product runs.
INSTANTIATE_TEST_SUITE_P(
    OfUniformNumbers, NativeErrors,
    testing::Combine(testing::Values("fp32", "fp64"), testing::Values("uniform", "uniform01"),
                     testing::ValuesIn(a_part_of<std::int64_t>({256, 1024, 64, 4096, 65536}))));

}  // namespace
}  // namespace kintsugi::test
