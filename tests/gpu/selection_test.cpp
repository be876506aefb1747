// Ranges and selection of the device against the host's.
#include "gpu/split_cases.hpp"

namespace kintsugi::test {
namespace {

template <class T>
class RangesOf : public testing::Test {};
TYPED_TEST_SUITE(RangesOf, EveryType);

TYPED_TEST(RangesOf, AreTheHosts) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  const SplitRule& rule = find_scheme("fp16x3")->program.split_a;
  for (int round = 0; round < 30 && !this->HasFailure(); ++round) {
    const auto layout = [&] { return layouts[static_cast<std::size_t>(random.integer(0, 2))]; };
    const Operand<TypeParam> a(random.integer(1, 100), random.integer(1, round < 25 ? 200 : 5000), layout(),
                               0, random.bits());
    const Operand<TypeParam> b(random.integer(1, 100), random.integer(1, 200), layout(), 1, random.bits());
    const DeviceOperand<TypeParam> device_a(a, rule, 0);
    const DeviceOperand<TypeParam> device_b(b, rule, 1);
    device_engine().find_ranges({}, device_a.split().side, device_b.split().side, {});
    const auto text = [&](const auto& operand) { return fmt::format("{}, seed {}", operand.text(), seed); };
    expect_same_ranges(device_a.ranges.host(), split_on_host(a.view(), rule).ranges, text(a), false);
    expect_same_ranges(device_b.ranges.host(), split_on_host(b.view(), rule).ranges, text(b), false);
  }
}

bool same(const RangeSummary& a, const RangeSummary& b) {
  return a.dynamic_range == b.dynamic_range && a.largest == b.largest && a.smallest == b.smallest &&
         a.finite == b.finite && a.least_elements == b.least_elements && a.depth == b.depth;
}

VectorRange draw_range(Random& random, std::int64_t widest) {
  VectorRange range;
  if (random.integer(0, 4) == 0) return range;
  range.flags = 0;
  if (random.integer(0, 300) == 0) range.flags = VectorRange::has_nan;
  range.largest = static_cast<std::int32_t>(random.integer(-100, 100));
  range.smallest = range.largest - static_cast<std::int32_t>(random.integer(0, widest));
  range.raised = range.largest;
  range.elements = static_cast<std::int32_t>(random.integer(900, 1000));
  range.depth = random.integer(0, 2000) == 0 ? VectorRange::unknown_depth
                                             : static_cast<std::int32_t>(random.integer(0, widest) * 100);
  return range;
}

// The ranges are read no more.
void know(DeviceSide& side, RangeSummary* summaries) {
  device_engine().summarize({}, side, summaries);
  side.summaries = summaries;
  side.ranges = nullptr;
}

TEST(Selection, IsThatOfTheSummaries) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  DeviceReport expected;
  const DeviceArray<DeviceReport> report(std::vector<DeviceReport>{expected});
  const DeviceCandidates candidates{{{5, 0}, {16, 4, 95}, {40, 9, 60}, {90, 15, 99}}, 4};
  const std::int64_t k = 1000;
  for (int round = 0; round < 60; ++round) {
    std::array<std::vector<VectorRange>, 2> ranges;
    for (auto& side : ranges) {
      const std::int64_t widest = random.integer(0, 110);
      side.resize(static_cast<std::size_t>(random.integer(0, round < 50 ? 700 : 20000)));
      for (VectorRange& range : side) range = draw_range(random, widest);
    }
    const DeviceArray<VectorRange> ranges_a(ranges[0]);
    const DeviceArray<VectorRange> ranges_b(ranges[1]);
    const DeviceMatrix a{.rows = static_cast<std::int64_t>(ranges[0].size()), .columns = k};
    const DeviceMatrix b{.rows = static_cast<std::int64_t>(ranges[1].size()), .columns = k};
    const DeviceArray<DeviceSelection> selection(1);
    const bool with_report = random.flip();
    DeviceSide side_a{a, 0, ranges_a.data()};
    DeviceSide side_b{b, 0, ranges_b.data()};
    const DeviceArray<RangeSummary> summaries(2);
    const std::array known{random.flip(), random.flip()};
    if (known[0]) know(side_a, summaries.data());
    if (known[1]) know(side_b, summaries.data() + 1);
    device_engine().select({}, side_a, side_b, {}, candidates, selection.data(),
                           {with_report ? report.data() : nullptr});
    const DeviceSelection got = selection.host()[0];
    const RangeSummary summary_a = summarize(ranges[0]);
    const RangeSummary summary_b = summarize(ranges[1]);
    const std::int32_t span = std::max(summary_a.dynamic_range, summary_b.dynamic_range);
    std::int32_t candidate = 0;
    const std::int32_t exponent = std::max(summary_a.largest, summary_b.largest);
    const auto takes = [&](std::int32_t r) {
      const Acceptance& acceptance = candidates.acceptances[r];
      return acceptance.exponent >= exponent &&
             (acceptance.dynamic_range >= span ||
              are_within_depth(summary_a, summary_b, k, acceptance.mean_depth));
    };
    while (candidate < candidates.count && !takes(candidate)) ++candidate;
    if (candidate == candidates.count) candidate = DeviceSelection::none;
    ASSERT_EQ(got.candidate, candidate)
        << "span " << span << ", exponent " << exponent << ", seed " << seed << ", round " << round;
    ASSERT_TRUE(same(got.a, summary_a) && same(got.b, summary_b)) << "seed " << seed << ", round " << round;
    if (!with_report) continue;
    ++(candidate < 0 ? expected.unreachable : expected.items[candidate]);
    expected.special += summary_a.finite && summary_b.finite ? 0 : 1;
    expected.dynamic_range_a = std::max(expected.dynamic_range_a, summary_a.dynamic_range);
    expected.dynamic_range_b = std::max(expected.dynamic_range_b, summary_b.dynamic_range);
  }
  const DeviceReport got = report.host()[0];
  for (int candidate = 0; candidate < 4; ++candidate)
    EXPECT_EQ(got.items[candidate], expected.items[candidate]) << "seed " << seed;
  EXPECT_EQ(got.scaled, 0);
  EXPECT_EQ(got.unreachable, expected.unreachable);
  EXPECT_EQ(got.special, expected.special);
  EXPECT_EQ(got.dynamic_range_a, expected.dynamic_range_a);
  EXPECT_EQ(got.dynamic_range_b, expected.dynamic_range_b);
}

// Items have summaries of their own, or all that of the one operand that serves them.
TEST(Selection, ItemsHaveTheirOwnSummaries) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  constexpr std::size_t items = 5;
  constexpr std::size_t vectors = 70;
  std::vector<VectorRange> own(items * vectors);
  for (std::size_t v = 0; v < own.size(); ++v) own[v] = draw_range(random, 3 + 9 * (v / vectors));
  std::vector<VectorRange> shared(vectors);
  for (VectorRange& range : shared) range = draw_range(random, 20);
  const DeviceArray<VectorRange> own_ranges(own);
  const DeviceArray<VectorRange> shared_ranges(shared);
  const DeviceMatrix matrix{.rows = vectors, .columns = 1000};
  const DeviceCandidates candidates{{{10, 0, 200}, {25, 0, 200}, {40, 0, 200}}, 3};
  const RangeSummary of_shared = summarize(shared);
  for (const bool own_known : {false, true}) {
    for (const bool shared_known : {false, true}) {
      const DeviceArray<RangeSummary> summaries(items + 1);
      const DeviceArray<DeviceSelection> selections(items);
      DeviceSide with_own{matrix, 0, own_ranges.data(), items};
      DeviceSide with_shared{matrix, 0, shared_ranges.data()};
      if (own_known) know(with_own, summaries.data());
      if (shared_known) know(with_shared, summaries.data() + items);
      for (const bool b_is_shared : {true, false}) {
        const DeviceSide& a = b_is_shared ? with_own : with_shared;
        const DeviceSide& b = b_is_shared ? with_shared : with_own;
        device_engine().select({}, a, b, {}, candidates, selections.data(), {});
        const std::vector<DeviceSelection> got = selections.host();
        for (std::size_t item = 0; item < items; ++item) {
          const RangeSummary of_own = summarize(std::span(own).subspan(item * vectors, vectors));
          EXPECT_TRUE(same(got[item].a, b_is_shared ? of_own : of_shared) &&
                      same(got[item].b, b_is_shared ? of_shared : of_own))
              << item << ", " << own_known << shared_known << b_is_shared << ", seed " << seed;
        }
      }
    }
  }
}

// alpha of every type, on the device and on the host: with 0 neither operand need be there.
TEST(Selection, AlphaZeroReadsNothing) {
  const DeviceArray<double> numbers(std::vector<double>{0, 0, -0.0, 0, 0, 3, 0});
  const DeviceArray<float> floats(std::vector<float>{0, 0, 0, 3});
  const SplitRule& rule = find_scheme("fp16x3")->program.split_a;
  const Operand<float> operand(5, 9, Layout::along_k, 0, 3);
  const DeviceOperand<float> device(operand, rule, 0);
  struct Case {
    ElementType type;
    const void* alpha;
    bool zero;
  };
  for (const Case& test :
       {Case{ElementType::f64, numbers.data(), true}, Case{ElementType::f64, numbers.data() + 2, true},
        Case{ElementType::c64, numbers.data() + 1, true}, Case{ElementType::c64, numbers.data() + 4, false},
        Case{ElementType::c32, floats.data(), true}, Case{ElementType::c32, floats.data() + 2, false},
        Case{ElementType::f32, floats.data(), true}, Case{ElementType::f32, floats.data() + 3, false}}) {
    DeviceSide side{{.rows = 5, .columns = 9, .row_stride = 9, .column_stride = 1}, 0, device.ranges.data()};
    side.matrix.type = test.type;
    DeviceScalars scalars;
    scalars.device_alpha = test.alpha;
    const DeviceArray<DeviceSelection> selection(1);
    const DeviceArray<DeviceReport> report(std::vector<DeviceReport>(1));
    // Where alpha counts, ranges are those of zeros; no operand is read by select().
    device_engine().copy_to_device({}, device.ranges.data(), std::vector<VectorRange>(5).data(),
                                   5 * sizeof(VectorRange));
    if (test.zero) device_engine().find_ranges({}, side, side, scalars);
    device_engine().select({}, side, side, scalars, {{{10, 0, 10}}, 1}, selection.data(), {report.data()});
    EXPECT_EQ(selection.host()[0].candidate, test.zero ? DeviceSelection::scaled : 0);
    EXPECT_EQ(report.host()[0].scaled, test.zero ? 1 : 0);
    EXPECT_EQ(report.host()[0].items[0], test.zero ? 0 : 1);
  }
  DeviceScalars zero;
  zero.alpha = 0;
  // An empty A: its ranges are there already, and alpha has the type of B.
  DeviceSide double_side{
      {.type = ElementType::f64, .rows = 5, .columns = 9, .row_stride = 9, .column_stride = 1},
      0,
      device.ranges.data()};
  DeviceScalars scalars;
  scalars.device_alpha = numbers.data();
  device_engine().find_ranges({}, {}, double_side, scalars);
  const DeviceSide nothing{{.rows = 5, .columns = 9}, 0, device.ranges.data()};
  const DeviceArray<DeviceSelection> selection(1);
  device_engine().find_ranges({}, nothing, nothing, zero);
  device_engine().select({}, nothing, nothing, zero, {{{10, 0, 10}}, 1}, selection.data(), {});
  EXPECT_EQ(selection.host()[0].candidate, DeviceSelection::scaled);
}

}  // namespace
}  // namespace kintsugi::test
