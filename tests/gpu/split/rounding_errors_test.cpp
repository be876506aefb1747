// Compares sums of rounding errors of the device with the host's.
#include <cmath>

#include "arith/residue/residue.hpp"
#include "engines/cuda/recombine/checked/checks.hpp"
#include "gpu/split/split_cases.hpp"
#include "split/ranges.hpp"

namespace kintsugi::test {
namespace {

template <class T>
class RoundingErrorsOf : public testing::Test {};
TYPED_TEST_SUITE(RoundingErrorsOf, EveryType);

template <class View>
RoundingErrors rounding_errors_of(const View& view, std::int64_t v, int scale) {
  RoundingErrors result;
  for (std::int64_t p = 0; p < view.columns; ++p) {
    const auto x = static_cast<double>(view(v, p));
    if (!std::isfinite(x)) continue;
    const double scaled = times_power_of_two(x, scale);
    const double integer = nearest_integer(scaled);
    result.errors += std::fabs(scaled - integer);
    if (integer == 0 && x != 0) result.errors += 0x1p-900;  // an element that underflows is not exact
    result.magnitudes += std::fabs(integer);
    result.largest = std::max(result.largest, std::fabs(integer));
  }
  return result;
}

// The device adds in another order. No rounded element may be lost, so both sums of errors are 0 or neither
// is.
TYPED_TEST(RoundingErrorsOf, EqualTheHostsInSmallCases) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  SplitRule rule = find_scheme("ozaki2:moduli=16")->program.split_a;
  for (int round = 0; round < 30 && !this->HasFailure(); ++round) {
    rule.top_exponent = static_cast<int>(random.integer(5, 70));
    const Operand<TypeParam> operand(random.integer(1, 60), random.integer(1, round < 25 ? 200 : 5000),
                                     layouts[static_cast<std::size_t>(random.integer(0, 2))], 0,
                                     random.bits());
    const auto view = operand.view();
    std::vector<VectorRange> ranges(static_cast<std::size_t>(view.rows));
    core::find_ranges(view, rule, ranges, 1);
    for (VectorRange& range : ranges) set_scale(range, rule);
    const DeviceOperand<TypeParam> device(operand, rule, 0);
    core::cuda::copy_to_device({}, device.ranges.data(), ranges.data(), ranges.size() * sizeof(VectorRange));
    const DeviceArray<RoundingErrors> errors(ranges.size());
    core::cuda::find_rounding_errors(
        {}, {device.split().side, errors.data(), 0, device.split().side.matrix.vectors()}, {}, {});
    const std::vector<RoundingErrors> found = errors.host();
    for (std::size_t v = 0; v < found.size(); ++v) {
      const std::string where = fmt::format("{}, vector {}, 2^{}, seed {}, round {}", operand.text(), v,
                                            rule.top_exponent, seed, round);
      const RoundingErrors expected = rounding_errors_of(view, static_cast<std::int64_t>(v), ranges[v].scale);
      ASSERT_EQ(found[v].errors == 0, expected.errors == 0) << where;
      ASSERT_NEAR(found[v].errors, expected.errors, 0x1p-40 * expected.errors) << where;
      ASSERT_NEAR(found[v].magnitudes, expected.magnitudes, 0x1p-40 * expected.magnitudes) << where;
      ASSERT_GE(found[v].largest, expected.largest) << where;
      ASSERT_LE(found[v].largest, 4 * expected.largest) << where;
    }
  }
}

// Compares what norms and a split have found of a vector with the host's rounding errors.
template <class View>
void expect_errors(const View& view, std::int64_t v, const VectorRange& range, const RoundingErrors& found,
                   const std::string& where) {
  const RoundingErrors expected = rounding_errors_of(view, v, range.scale);
  if (!range.finite()) {
    ASSERT_GE(found.errors, expected.errors * (1 - 0x1p-40)) << where;
    return;
  }
  ASSERT_EQ(found.errors == 0, expected.errors == 0) << where;
  // The errors of eight elements are rounded up to multiples of 2^-24.
  ASSERT_GE(found.errors, expected.errors * (1 - 0x1p-40)) << where;
  ASSERT_LE(found.errors, expected.errors + 0x1p-27 * static_cast<double>(view.columns) + 0x1p-20) << where;
  ASSERT_LE(expected.magnitudes, found.magnitudes * (1 + 0x1p-40)) << where;
  ASSERT_LE(found.magnitudes, expected.magnitudes * (1 + 0x1p-40) + 2 * expected.errors + 1) << where;
  ASSERT_GE(found.largest, expected.largest) << where;
}

// Norms and split find sums from which the rounding errors follow without another read, once for each split;
// short vectors and those with free strides, which other kernels split, are read once more.
TEST(RoundingErrorsOfDoubles, FollowFromNormsAndSplits) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  for (int round = 0; round < 40 && !HasFailure(); ++round) {
    const SplitRule rule =
        find_scheme(round % 2 == 0 ? "ozaki2:moduli=19" : "ozaki2:moduli=24")->program.split_a;
    const Operand<double> operand(random.integer(1, 70), random.integer(100, round < 35 ? 900 : 4000),
                                  layouts[static_cast<std::size_t>(random.integer(0, 2))], 0, random.bits());
    const auto view = operand.view();
    const auto vectors = static_cast<std::size_t>(view.rows);
    const DeviceOperand<double> device(operand, rule, 0);
    const DeviceArray<VectorNorm> norms(vectors);
    const DeviceArray<VectorMagnitudes> magnitudes(vectors);
    const DeviceArray<RoundingErrors> errors(vectors);
    DeviceSplit split = device.split();
    split.side.norms = norms.data();
    split.side.magnitudes = magnitudes.data();
    split.ranges_known = true;
    core::cuda::find_scaling_norms({}, split.side, no_side(1), {});
    for (int repeated = 0; repeated < 2; ++repeated) {
      core::cuda::split({}, {&split, 1}, {});
      core::cuda::find_rounding_errors({}, {split.side, errors.data(), 0, view.rows}, {}, {});
    }
    const std::vector<VectorRange> ranges = device.ranges.host();
    const std::vector<RoundingErrors> found = errors.host();
    for (std::size_t v = 0; v < vectors; ++v)
      expect_errors(view, static_cast<std::int64_t>(v), ranges[v], found[v],
                    fmt::format("{}, vector {}, seed {}, round {}", operand.text(), v, seed, round));
  }
}

}  // namespace
}  // namespace kintsugi::test
