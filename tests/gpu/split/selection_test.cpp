// Compares ranges and selection of the device with the host's.
#include "gpu/split/split_cases.hpp"

namespace kintsugi::test {
namespace {

template <class T>
class RangesOf : public testing::Test {};
TYPED_TEST_SUITE(RangesOf, EveryType);

TYPED_TEST(RangesOf, EqualTheHosts) {
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
    core::cuda::find_ranges({}, device_a.split().side, device_b.split().side, {});
    const auto text = [&](const auto& operand) { return fmt::format("{}, seed {}", operand.text(), seed); };
    expect_same_ranges(device_a.ranges.host(), split_on_host(a.view(), rule).ranges, text(a), false);
    expect_same_ranges(device_b.ranges.host(), split_on_host(b.view(), rule).ranges, text(b), false);
  }
}

bool are_equal(const RangeSummary& a, const RangeSummary& b) {
  return a.dynamic_range == b.dynamic_range && a.largest == b.largest && a.smallest == b.smallest &&
         a.finite == b.finite && a.min_elements == b.min_elements && a.depth == b.depth;
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

// Summarizes the ranges of a side before the call, which then gets the summary instead of the ranges.
void summarize_ranges(DeviceSide& side, MergedSummary* summaries) {
  core::cuda::summarize({}, side, summaries);
  side.summaries = summaries;
  side.ranges = nullptr;
}

// Ranges of a random number of vectors, on the host and on the device.
struct DrawnRanges {
  DrawnRanges(Random& random, std::int64_t max_vectors)
      : host(draw(random, max_vectors)), device(host), summary(summarize(host)) {}

  static std::vector<VectorRange> draw(Random& random, std::int64_t max_vectors) {
    const std::int64_t widest = random.integer(0, 110);
    std::vector<VectorRange> ranges(static_cast<std::size_t>(random.integer(0, max_vectors)));
    for (VectorRange& range : ranges) range = draw_range(random, widest);
    return ranges;
  }
  DeviceSide side(std::int64_t k) const {
    const DeviceMatrix matrix{.rows = static_cast<std::int64_t>(host.size()), .columns = k};
    return {matrix, 0, device.data()};
  }

  std::vector<VectorRange> host;
  DeviceArray<VectorRange> device;
  RangeSummary summary;
};

std::int32_t first_accepted(const DeviceCandidates& candidates, const RangeSummary& a, const RangeSummary& b,
                            std::int64_t k) {
  const std::int32_t range = std::max(a.dynamic_range, b.dynamic_range);
  const std::int32_t exponent = std::max(a.largest, b.largest);
  for (std::int32_t candidate = 0; candidate < candidates.count; ++candidate) {
    const Acceptance& acceptance = candidates.acceptances[candidate];
    if (acceptance.exponent >= exponent &&
        (acceptance.dynamic_range >= range || are_within_depth(a, b, k, acceptance.mean_depth)))
      return candidate;
  }
  return DeviceSelection::none;
}

void add_item(DeviceReport& report, std::int32_t candidate, const RangeSummary& a, const RangeSummary& b) {
  ++(candidate < 0 ? report.unreachable : report.items[candidate]);
  report.special += a.finite && b.finite ? 0 : 1;
  report.dynamic_range_a = std::max(report.dynamic_range_a, a.dynamic_range);
  report.dynamic_range_b = std::max(report.dynamic_range_b, b.dynamic_range);
}

void expect_same_report(const DeviceReport& got, const DeviceReport& expected) {
  for (int candidate = 0; candidate < 4; ++candidate)
    EXPECT_EQ(got.items[candidate], expected.items[candidate]) << candidate;
  EXPECT_EQ(got.scaled, 0);
  EXPECT_EQ(got.unreachable, expected.unreachable);
  EXPECT_EQ(got.special, expected.special);
  EXPECT_EQ(got.dynamic_range_a, expected.dynamic_range_a);
  EXPECT_EQ(got.dynamic_range_b, expected.dynamic_range_b);
}

TEST(Selection, TakesTheFirstCandidateThatAcceptsTheRanges) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  DeviceReport expected;
  const DeviceArray<DeviceReport> report(std::vector<DeviceReport>{expected});
  const DeviceCandidates candidates{{{5, 0}, {16, 4, 95}, {40, 9, 60}, {90, 15, 99}}, 4};
  const std::int64_t k = 1000;
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(fmt::format("seed {}, round {}", seed, round));
    const DrawnRanges a(random, round < 50 ? 700 : 20000);
    const DrawnRanges b(random, round < 50 ? 700 : 20000);
    const DeviceArray<DeviceSelection> selection(1);
    const DeviceArray<MergedSummary> summaries(2);
    DeviceSide side_a = a.side(k);
    DeviceSide side_b = b.side(k);
    const bool with_report = random.flip();
    if (random.flip()) summarize_ranges(side_a, summaries.data());
    if (random.flip()) summarize_ranges(side_b, summaries.data() + 1);
    core::cuda::select({}, side_a, side_b, {}, candidates, selection.data(),
                       {with_report ? report.data() : nullptr});
    const DeviceSelection got = selection.host()[0];
    const std::int32_t candidate = first_accepted(candidates, a.summary, b.summary, k);
    ASSERT_EQ(got.candidate, candidate);
    ASSERT_TRUE(are_equal(got.a, a.summary) && are_equal(got.b, b.summary));
    if (with_report) add_item(expected, candidate, a.summary, b.summary);
  }
  SCOPED_TRACE(seed);
  expect_same_report(report.host()[0], expected);
}

// Items of a batch have summaries of their own, or share the one of an operand that serves all items.
TEST(Selection, ItemsHaveTheSummariesOfTheirOwnOperands) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  constexpr std::size_t items = 5;
  constexpr std::size_t vectors = 70;
  std::vector<VectorRange> ranges_of_items(items * vectors);
  for (std::size_t v = 0; v < ranges_of_items.size(); ++v)
    ranges_of_items[v] = draw_range(random, 3 + 9 * (v / vectors));
  std::vector<VectorRange> ranges_of_shared(vectors);
  for (VectorRange& range : ranges_of_shared) range = draw_range(random, 20);
  const DeviceArray<VectorRange> own_ranges(ranges_of_items);
  const DeviceArray<VectorRange> shared_ranges(ranges_of_shared);
  const DeviceMatrix matrix{.rows = vectors, .columns = 1000};
  const DeviceCandidates candidates{{{10, 0, 200}, {25, 0, 200}, {40, 0, 200}}, 3};
  const RangeSummary shared_summary = summarize(ranges_of_shared);
  for (const bool own_known : {false, true}) {
    for (const bool shared_known : {false, true}) {
      const DeviceArray<MergedSummary> summaries(items + 1);
      const DeviceArray<DeviceSelection> selections(items);
      DeviceSide with_own{matrix, 0, own_ranges.data(), items};
      DeviceSide with_shared{matrix, 0, shared_ranges.data()};
      if (own_known) summarize_ranges(with_own, summaries.data());
      if (shared_known) summarize_ranges(with_shared, summaries.data() + items);
      for (const bool b_is_shared : {true, false}) {
        const DeviceSide& a = b_is_shared ? with_own : with_shared;
        const DeviceSide& b = b_is_shared ? with_shared : with_own;
        core::cuda::select({}, a, b, {}, candidates, selections.data(), {});
        const std::vector<DeviceSelection> got = selections.host();
        for (std::size_t item = 0; item < items; ++item) {
          const RangeSummary own_summary =
              summarize(std::span(ranges_of_items).subspan(item * vectors, vectors));
          EXPECT_TRUE(are_equal(got[item].a, b_is_shared ? own_summary : shared_summary) &&
                      are_equal(got[item].b, b_is_shared ? shared_summary : own_summary))
              << item << ", " << own_known << shared_known << b_is_shared << ", seed " << seed;
        }
      }
    }
  }
}

// For alpha of every type in device memory: where it is 0, no operand is read.
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
    // The operand does not exist, so an alpha that is not 0 gets the ranges of zeros; select() reads no
    // operand.
    core::cuda::copy_to_device({}, device.ranges.data(), std::vector<VectorRange>(5).data(),
                               5 * sizeof(VectorRange));
    if (test.zero) core::cuda::find_ranges({}, side, side, scalars);
    core::cuda::select({}, side, side, scalars, {{{10, 0, 10}}, 1}, selection.data(), {report.data()});
    EXPECT_EQ(selection.host()[0].candidate, test.zero ? DeviceSelection::scaled : 0);
    EXPECT_EQ(report.host()[0].scaled, test.zero ? 1 : 0);
    EXPECT_EQ(report.host()[0].items[0], test.zero ? 0 : 1);
  }
}

// First an empty A, so that alpha in device memory has B's type; then alpha = 0 on the host and no operand.
TEST(Selection, AlphaZeroNeedsNoOperands) {
  const DeviceArray<double> numbers(std::vector<double>{0, 0});
  const Operand<float> operand(5, 9, Layout::along_k, 0, 3);
  const DeviceOperand<float> device(operand, find_scheme("fp16x3")->program.split_a, 0);
  DeviceScalars zero;
  zero.alpha = 0;
  DeviceSide double_side{
      {.type = ElementType::f64, .rows = 5, .columns = 9, .row_stride = 9, .column_stride = 1},
      0,
      device.ranges.data()};
  DeviceScalars scalars;
  scalars.device_alpha = numbers.data();
  core::cuda::find_ranges({}, {}, double_side, scalars);
  const DeviceSide nothing{{.rows = 5, .columns = 9}, 0, device.ranges.data()};
  const DeviceArray<DeviceSelection> selection(1);
  core::cuda::find_ranges({}, nothing, nothing, zero);
  core::cuda::select({}, nothing, nothing, zero, {{{10, 0, 10}}, 1}, selection.data(), {});
  EXPECT_EQ(selection.host()[0].candidate, DeviceSelection::scaled);
}

}  // namespace
}  // namespace kintsugi::test
