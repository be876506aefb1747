// Compares rounding-error bounds of the device with the host's.
#include "split/rounding_bounds.hpp"

#include "gpu/split/split_cases.hpp"
#include "split/ranges.hpp"

namespace kintsugi::test {
namespace {

template <class T>
class RoundingBoundsOf : public testing::Test {};
TYPED_TEST_SUITE(RoundingBoundsOf, EveryType);

// Counts must be equal. Sums of magnitudes may differ a little, since the device adds in another order.
TYPED_TEST(RoundingBoundsOf, EqualTheHostsInSmallCases) {
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
    std::vector<RoundingBound> expected(ranges.size());
    core::find_rounding_bounds(view, ranges, {}, expected, 1);
    const DeviceOperand<TypeParam> device(operand, rule, 0);
    device_engine().copy_to_device({}, device.ranges.data(), ranges.data(),
                                   ranges.size() * sizeof(VectorRange));
    const DeviceArray<RoundingBound> bounds(ranges.size());
    device_engine().find_rounding_bounds(
        {}, {device.split().side, rule.top_exponent, bounds.data(), 0, device.split().side.matrix.vectors()},
        {}, {});
    const std::vector<RoundingBound> found = bounds.host();
    for (std::size_t v = 0; v < found.size(); ++v) {
      const std::string where = fmt::format("{}, vector {}, 2^{}, seed {}, round {}", operand.text(), v,
                                            rule.top_exponent, seed, round);
      ASSERT_EQ(found[v].inexact, expected[v].inexact) << where;
      ASSERT_NEAR(found[v].magnitudes, expected[v].magnitudes, 0x1p-40 * expected[v].magnitudes) << where;
    }
  }
}

}  // namespace
}  // namespace kintsugi::test
