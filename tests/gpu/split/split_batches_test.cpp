// Compares ranges, selection and splits of several batch items in one step with the host's.
#include "gpu/split/split_cases.hpp"

namespace kintsugi::test {
namespace {

// Items of one shape, stored with a gap between them. A step takes all but the first and the last item, which
// must not change. Each item also has a pointer.
template <class T>
struct Batch {
  Batch(std::int64_t number, std::int64_t rows, std::int64_t columns, Layout layout, bool by_pointers,
        const SplitRule& split_rule, std::uint64_t seed)
      : rule(split_rule), items(operands_of(number, rows, columns, layout, seed)),
        values(values_of(items), layout == Layout::free ? 1 : 0), pointers(pointers_of(items, values.data())),
        vectors(items[0].matrix.vectors()), length(items[0].matrix.length()),
        ranges(static_cast<std::size_t>((number + 2) * vectors)),
        slices(static_cast<std::size_t>(number + 2) * slices_of(rule, vectors, length).bytes()) {
    matrix = items[0].matrix;
    matrix.pointers = by_pointers;
    matrix.data = by_pointers ? static_cast<const void*>(pointers.data()) : values.data();
    matrix.batch_stride = by_pointers ? 0 : stride_of(items[0]);
  }

  static constexpr std::int64_t gap = 3;
  static std::int64_t stride_of(const Operand<T>& operand) {
    return static_cast<std::int64_t>(operand.values.size()) + gap;
  }
  static std::vector<Operand<T>> operands_of(std::int64_t number, std::int64_t rows, std::int64_t columns,
                                             Layout layout, std::uint64_t seed) {
    Random random(seed);
    std::vector<Operand<T>> all(static_cast<std::size_t>(number + 2),
                                Operand<T>(rows, columns, layout, 0, random.bits()));
    for (Operand<T>& operand : all) operand.draw_values(random);
    return all;
  }
  static std::vector<T> values_of(const std::vector<Operand<T>>& operands) {
    std::vector<T> all;
    for (const Operand<T>& operand : operands) {
      all.insert(all.end(), operand.values.begin(), operand.values.end());
      all.resize(all.size() + gap, T(std::numeric_limits<RealOf<T>>::quiet_NaN()));
    }
    return all;
  }
  static std::vector<const void*> pointers_of(const std::vector<Operand<T>>& operands, const T* first) {
    std::vector<const void*> all;
    for (std::size_t e = 0; e < operands.size(); ++e)
      all.push_back(first + static_cast<std::int64_t>(e) * stride_of(operands[0]));
    return all;
  }

  std::int64_t number() const { return static_cast<std::int64_t>(items.size()) - 2; }
  std::size_t slice_bytes() const { return slices_of(rule, vectors, length).bytes(); }
  // Items 1 ... number, whose ranges and slices follow those of item 0.
  DeviceSide side() const {
    return {.matrix = matrix, .item = 1, .ranges = ranges.data() + vectors, .items = number()};
  }
  DeviceSplit split() const {
    Slices target = slices_of(rule, vectors, length);
    target.data = slices.data() + slice_bytes();
    return {.side = side(), .rule = &rule, .slices = target};
  }

  // Items for which is_split(item) is true must have the host's slices; the others, and those at the ends,
  // must be untouched.
  template <class IsSplit>
  void expect_host(const std::string& text, const IsSplit& is_split) const {
    const std::vector<VectorRange> found_ranges = ranges.host();
    const std::vector<std::byte> found_slices = slices.host();
    for (std::size_t e = 0; e < items.size() && !testing::Test::HasFailure(); ++e) {
      const std::string where = fmt::format("{}, item {} of {}", text, e, number());
      const auto first = found_slices.begin() + static_cast<std::ptrdiff_t>(e * slice_bytes());
      const std::vector<std::byte> item_slices(first, first + static_cast<std::ptrdiff_t>(slice_bytes()));
      const auto first_range = found_ranges.begin() + static_cast<std::ptrdiff_t>(e) * vectors;
      const std::vector<VectorRange> ranges_of_item(first_range, first_range + vectors);
      const bool in_step = e > 0 && e + 1 < items.size();
      if (in_step && is_split(static_cast<std::int64_t>(e) - 1)) {
        const HostSplit host = split_on_host(items[e].view(), rule);
        expect_same_ranges(ranges_of_item, host.ranges, where);
        expect_same_slices(item_slices, host, items[e].view(), rule, where);
        continue;
      }
      constexpr std::byte poison{DeviceArray<std::byte>::poison};
      EXPECT_TRUE(
          std::all_of(item_slices.begin(), item_slices.end(), [&](std::byte x) { return x == poison; }))
          << where << " was written to";
      EXPECT_TRUE(std::all_of(ranges_of_item.begin(), ranges_of_item.end(),
                              [](const VectorRange& range) { return range.flags == 0xcdcdcdcdU; }))
          << where << ": its ranges were written to";
    }
  }
  void expect_host(const std::string& text) const {
    expect_host(text, [](std::int64_t) { return true; });
  }
  std::string text(const char* name) const {
    return fmt::format("{}, {}, {}", name, items[0].text(), matrix.pointers ? "pointers" : "strides");
  }

  SplitRule rule;
  std::vector<Operand<T>> items;
  DeviceArray<T> values;
  DeviceArray<const void*> pointers;
  std::int64_t vectors;
  std::int64_t length;
  DeviceArray<VectorRange> ranges;
  DeviceArray<std::byte> slices;
  DeviceMatrix matrix;
};

template <class T>
SplitRule rule_of(const char* name, std::int64_t k) {
  Program program = find_scheme(name)->program;
  if (find_scheme(name)->fit != nullptr)
    find_scheme(name)->fit(program, std::is_same_v<RealOf<T>, float> ? OperandType::f32 : OperandType::f64,
                           k);
  return program.split_a;
}

// Splits one operand of each layout, whose items have strides or pointers.
template <class T>
void check_batches(const char* name, Random& random) {
  for (const Layout layout : layouts) {
    for (const bool by_pointers : {false, true}) {
      const std::uint64_t seed = random.bits();
      const std::int64_t k = random.integer(1, 700);
      const Batch<T> batch(random.integer(1, 5), random.integer(1, 150), k, layout, by_pointers,
                           rule_of<T>(name, k), seed);
      const DeviceSplit split = batch.split();
      core::cuda::split({}, {&split, 1}, {});
      batch.expect_host(fmt::format("{}, seed {}", batch.text(name), seed));
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(SplitBatches, ItemsInOneStepHaveTheHostsSlices) {
  Random random(fresh_seed());
  for (const char* name : {"fp16x3", "fp16x3-wide", "legemm", "bf16x6", "tf32x3", "int8x6", "quantensor",
                           "ozaki2:moduli=8", "split-n:format=fp8_e4m3"})
    check_batches<float>(name, random);
  for (const char* name : {"ozaki2:moduli=15", "ozaki-int8", "split-n"}) check_batches<double>(name, random);
  check_batches<std::complex<float>>("fp16x3", random);
  check_batches<std::complex<double>>("ozaki-int8", random);
}

// Items whose vectors several thread blocks share.
TEST(SplitBatches, LongVectorsHaveTheHostsSlices) {
  Random random(fresh_seed());
  for (const char* name : {"fp16x3", "int8x6"}) {
    for (const Layout layout : layouts) {
      for (const bool by_pointers : {false, true}) {
        const std::int64_t k = random.integer(57000, 70000);
        const Batch<float> batch(random.integer(1, 2), random.integer(1, 4), k, layout, by_pointers,
                                 rule_of<float>(name, k), random.bits());
        const DeviceSplit split = batch.split();
        core::cuda::split({}, {&split, 1}, {});
        batch.expect_host(batch.text(name));
        if (HasFailure()) return;
      }
    }
  }
}

TEST(SplitBatches, BothOperandsInOneStepHaveTheHostsSlices) {
  Random random(fresh_seed());
  for (int round = 0; round < 40 && !HasFailure(); ++round) {
    const auto layout = [&] { return layouts[static_cast<std::size_t>(random.integer(0, 2))]; };
    const std::uint64_t seed = random.bits();
    const std::int64_t k = random.integer(1, 1200);
    const std::int64_t number = random.integer(1, 4);
    const char* name = round % 2 == 0 ? "fp16x3" : "int8x6";
    const SplitRule rule = rule_of<float>(name, k);
    const Batch<float> a(number, random.integer(1, 200), k, layout(), random.flip(), rule, seed);
    // Every third time, all items share one B.
    const Batch<float> b(round % 3 == 0 ? 1 : number, random.integer(1, 200), k, layout(), random.flip(),
                         rule, seed + 1);
    const std::array splits{a.split(), b.split()};
    core::cuda::split({}, splits, {});
    a.expect_host(fmt::format("{}, seed {}, A", a.text(name), seed));
    b.expect_host(fmt::format("{}, seed {}, B", b.text(name), seed));
  }
}

// Only items whose selection names the candidate are split. A shared B is split if any item names it.
TEST(SplitBatches, EachItemHasItsOwnSelection) {
  Random random(fresh_seed());
  for (const Layout layout : layouts) {
    for (const bool none_selects_it : {false, true}) {
      constexpr std::int64_t number = 5;
      const std::uint64_t seed = random.bits();
      const SplitRule rule = rule_of<float>("fp16x3", 300);
      const Batch<float> a(number, 140, 300, layout, false, rule, seed);
      const Batch<float> b(1, 90, 300, Layout::along_k, false, rule, seed + 1);
      std::vector<DeviceSelection> selections(number);
      for (std::int64_t e = 0; e < number; ++e)
        selections[static_cast<std::size_t>(e)].candidate = none_selects_it || e % 2 == 0 ? 1 : 0;
      const DeviceArray<DeviceSelection> selection(selections);
      const std::array splits{a.split(), b.split()};
      core::cuda::split({}, splits, {selection.data(), 0});
      const std::string text = fmt::format("{}, seed {}", a.text("fp16x3"), seed);
      a.expect_host(text,
                    [&](std::int64_t e) { return selections[static_cast<std::size_t>(e)].candidate == 0; });
      b.expect_host(text + ", one B for all", [&](std::int64_t) { return !none_selects_it; });
      if (HasFailure()) return;
    }
  }
}

TEST(SplitBatches, BlocksCoverAllItems) {
  const std::uint64_t seed = fresh_seed();
  for (const Layout layout : layouts) {
    const Batch<float> batch(3, 300, 200, layout, false, rule_of<float>("bf16x6", 200), seed);
    for (std::int64_t first = 0; first < 300; first += 128) {
      DeviceSplit block = batch.split();
      block.first = first;
      block.slices = block.slices.block(first, std::min<std::int64_t>(128, 300 - first));
      core::cuda::split({}, {&block, 1}, {});
    }
    batch.expect_host(fmt::format("{}, seed {}, by blocks", batch.text("bf16x6"), seed));
  }
}

TEST(SplitBatches, RangesAndSelectionsEqualTheHosts) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  for (int round = 0; round < 30 && !HasFailure(); ++round) {
    const auto layout = [&] { return layouts[static_cast<std::size_t>(random.integer(0, 2))]; };
    const std::int64_t number = random.integer(1, 6);
    const SplitRule rule = rule_of<float>("fp16x3", 100);
    const Batch<float> a(number, random.integer(1, 60), 100, layout(), random.flip(), rule, random.bits());
    const Batch<float> b(round % 3 == 0 ? 1 : number, random.integer(1, 60), 100, layout(), random.flip(),
                         rule, random.bits());
    const DeviceArray<DeviceSelection> selection(static_cast<std::size_t>(number));
    const DeviceArray<DeviceReport> report(std::vector<DeviceReport>(1));
    const DeviceCandidates candidates{{{20}, {60, 0, 100}}, 2};
    core::cuda::find_ranges({}, a.side(), b.side(), {});
    core::cuda::select({}, a.side(), b.side(), {}, candidates, selection.data(), {report.data()});
    const std::vector<DeviceSelection> selections = selection.host();
    std::int64_t counted[3] = {};  // the candidates, then none
    for (std::int64_t e = 0; e < number; ++e) {
      const auto summary = [&](const Batch<float>& batch) {
        const auto index = static_cast<std::size_t>(batch.number() == 1 ? 1 : e + 1);
        return summarize(split_on_host(batch.items[index].view(), rule).ranges);
      };
      const RangeSummary summary_a = summary(a);
      const RangeSummary summary_b = summary(b);
      const std::int32_t dynamic_range = std::max(summary_a.dynamic_range, summary_b.dynamic_range);
      const bool second_fits = dynamic_range <= 60 && std::max(summary_a.largest, summary_b.largest) <= 100;
      const std::int32_t candidate = dynamic_range <= 20 ? 0 : second_fits ? 1 : DeviceSelection::none;
      const DeviceSelection& got = selections[static_cast<std::size_t>(e)];
      ASSERT_EQ(got.candidate, candidate)
          << "item " << e << " of " << number << ", seed " << seed << ", round " << round;
      ASSERT_EQ(got.a.dynamic_range, summary_a.dynamic_range) << "item " << e << ", seed " << seed;
      ASSERT_EQ(got.b.dynamic_range, summary_b.dynamic_range) << "item " << e << ", seed " << seed;
      ++counted[candidate < 0 ? 2 : candidate];
    }
    const DeviceReport found = report.host()[0];
    EXPECT_EQ(found.items[0], counted[0]);
    EXPECT_EQ(found.items[1], counted[1]);
    EXPECT_EQ(found.unreachable, counted[2]);
  }
}

// Items of one element each, whose slices have 32 KiB.
TEST(SplitBatches, MoreItemsThanAGridTakesHaveTheHostsSlices) {
  constexpr std::int64_t number = 70001;
  const SplitRule rule = rule_of<float>("fp16x3", 1);
  std::vector<float> numbers(number);
  for (std::size_t e = 0; e < numbers.size(); ++e) numbers[e] = static_cast<float>(e + 1) / 3;
  const DeviceArray<float> values(numbers);
  for (const Layout layout : layouts) {
    Operand<float> operand(1, 1, layout, 0, 1);
    operand.matrix.data = values.data();
    operand.matrix.batch_stride = 1;
    const DeviceArray<VectorRange> ranges(number);
    Slices slices = slices_of(rule, 1, 1);
    const std::size_t bytes = slices.bytes();
    const DeviceArray<std::byte> memory(number * bytes);
    slices.data = memory.data();
    const DeviceSplit split{.side = {.matrix = operand.matrix, .ranges = ranges.data(), .items = number},
                            .rule = &rule,
                            .slices = slices};
    core::cuda::find_ranges({}, split.side, {}, {});
    const std::vector<VectorRange> ranges_alone = ranges.host();
    core::cuda::split({}, {&split, 1}, {});
    const std::vector<VectorRange> found = ranges.host();
    for (const std::size_t e : {0, 1, 65534, 65535, 65536, 70000}) {
      operand.values = {numbers[e]};
      const std::string text = fmt::format("{}, item {}", operand.text(), e);
      const HostSplit host = split_on_host(operand.view(), rule);
      std::vector<std::byte> item_slices(bytes);
      core::cuda::copy_to_host({}, item_slices.data(), memory.data() + e * bytes, bytes);
      core::cuda::synchronize(Queue{});
      expect_same_ranges({ranges_alone[e]}, host.ranges, text + ", find_ranges", false);
      expect_same_ranges({found[e]}, host.ranges, text);
      expect_same_slices(item_slices, host, operand.view(), rule, text);
    }
  }
}

}  // namespace
}  // namespace kintsugi::test
