// Splits on the device give the bits of the host's loops.
#include "gpu/split/split_cases.hpp"

namespace kintsugi::test {
namespace {

template <class T>
class SplitsOf : public testing::Test {};
TYPED_TEST_SUITE(SplitsOf, EveryType);

TYPED_TEST(SplitsOf, EverySchemeHasTheHostsSlices) {
  Random random(fresh_seed());
  for (const NamedRule& rule : rules_of<TypeParam>()) {
    for (const Layout layout : layouts) {
      for (int round = 0; round < 2 && !this->HasFailure(); ++round) {
        check_split<TypeParam>(rule, random.integer(1, 200), random.integer(1, 400), layout,
                               static_cast<std::size_t>(round), random.bits());
      }
    }
  }
}

TYPED_TEST(SplitsOf, RulesThatNoSchemeHasGiveTheHostsSlices) {
  Random random(fresh_seed());
  for (const NamedRule& rule : made_rules()) {
    for (const Layout layout : layouts) {
      check_split<TypeParam>(rule, random.integer(1, 150), random.integer(1, 150), layout,
                             static_cast<std::size_t>(random.integer(0, 1)), random.bits());
      if (this->HasFailure()) return;
    }
  }
}

// Sizes around the kernels' tiles (16 x 64), panels (8, 16) and blocks (64 elements, 128 vectors).
TYPED_TEST(SplitsOf, EveryShapeHasTheHostsSlices) {
  Random random(fresh_seed());
  const std::vector<NamedRule> rules = rules_of<TypeParam>();
  constexpr std::array edges{1,  2,  3,  4,  7,   8,   9,   15,  16,  17,  31,  32,  33,  63,  64,
                             65, 95, 96, 97, 127, 128, 129, 130, 255, 256, 257, 511, 513, 1023};
  for (const std::int64_t size : edges) {
    for (const Layout layout : layouts) {
      const NamedRule& rule = rules[static_cast<std::size_t>(random.bits() % rules.size())];
      const std::size_t offset = random.flip() ? 1 : 0;
      check_split<TypeParam>(rule, std::min<std::int64_t>(size, 300), random.integer(1, 300), layout, offset,
                             random.bits());
      check_split<TypeParam>(rule, random.integer(1, 300), size, layout, offset, random.bits());
      if (this->HasFailure()) return;
    }
  }
}

TYPED_TEST(SplitsOf, EverySmallSizeHasTheHostsSlices) {
  Random random(fresh_seed());
  const std::vector<NamedRule> rules = rules_of<TypeParam>();
  for (std::int64_t size = 1; size <= 130 && !this->HasFailure(); ++size) {
    const NamedRule& rule = rules[static_cast<std::size_t>(random.bits() % rules.size())];
    check_split<TypeParam>(rule, size, 131 - size, layouts[static_cast<std::size_t>(size) % layouts.size()],
                           0, random.bits());
  }
}

// So many vectors that every thread block takes whole panels.
TYPED_TEST(SplitsOf, ManySmallVectorsHaveTheHostsSlices) {
  Random random(fresh_seed());
  const std::vector<NamedRule> rules = rules_of<TypeParam>();
  for (const Layout layout : layouts) {
    const NamedRule& rule = rules[static_cast<std::size_t>(random.bits() % rules.size())];
    check_split<TypeParam>(rule, random.integer(8200, 8400), random.integer(1, 40), layout, 0, random.bits());
    if (this->HasFailure()) return;
  }
}

// Vectors that a thread block or a cluster holds, and vectors too long for either (57,000 and 27,000 floats).
TYPED_TEST(SplitsOf, LongVectorsHaveTheHostsSlices) {
  Random random(fresh_seed());
  const std::vector<NamedRule> rules = rules_of<TypeParam>();
  for (const std::int64_t length : {2047, 4096, 8192, 12289, 16384, 26000, 28000, 40000, 60000}) {
    for (const Layout layout : layouts) {
      const NamedRule& rule = rules[static_cast<std::size_t>(random.bits() % rules.size())];
      check_split<TypeParam>(rule, random.integer(1, 5), length, layout, random.flip() ? 1 : 0,
                             random.bits());
      if (this->HasFailure()) return;
    }
  }
}

// Slices of every element type with a kernel of its own, in operands with every kind of vector.
TEST(Splits, LargeOperandsAreSplitAsOnTheHost) {
  Random random(fresh_seed());
  for (const char* name : {"fp16x3", "fp16x3-wide", "bf16x6", "tf32x3", "legemm", "markidis", "int8x6",
                           "quantensor", "ozaki2:moduli=8"}) {
    for (const Layout layout : layouts) {
      Program program = find_scheme(name)->program;
      if (find_scheme(name)->fit != nullptr) find_scheme(name)->fit(program, OperandType::f32, 3000);
      check_split<float>({name, program.split_a}, 1000, 3000, layout, 0, random.bits());
      if (HasFailure()) return;
    }
  }
  for (const char* name : {"ozaki2:moduli=15", "ozaki-int8"}) {
    for (const Layout layout : layouts) {
      Program program = find_scheme(name)->program;
      if (find_scheme(name)->fit != nullptr) find_scheme(name)->fit(program, OperandType::f64, 3000);
      check_split<double>({name, program.split_a}, 1000, 3000, layout, 0, random.bits());
      if (HasFailure()) return;
    }
  }
}

// Mean depths, which decide between fp16x3 and candidates of wider range, in every layout of an operand.
TEST(Splits, MeanDepthsEqualTheHostsInSmallCases) {
  Random random(fresh_seed());
  for (const char* name : {"fp16x3", "fp16x3-wide"}) {
    const SplitRule& rule = find_scheme(name)->program.split_a;
    for (const Layout layout : layouts) {
      for (const std::int64_t length : {1, 70, 3000, 70000}) {
        const Operand<float> operand(40, length, layout, 0, random.bits());
        const DeviceOperand<float> device(operand, rule, 0);
        DeviceSplit split = device.split();
        split.finds_depth = true;
        for (const bool while_split : {true, false}) {
          if (while_split) {
            core::cuda::split({}, {&split, 1}, {});
          } else {
            core::cuda::find_ranges({}, split.side, {}, {});
          }
          const std::vector<VectorRange> ranges = device.ranges.host();
          std::vector<VectorRange> host = split_on_host(operand.view(), rule).ranges;
          for (std::size_t v = 0; v < host.size(); ++v) {
            ASSERT_EQ(ranges[v].elements, host[v].elements) << name << ", " << name_of(layout) << ", " << v;
            ASSERT_EQ(ranges[v].depth, host[v].depth) << name << ", " << name_of(layout) << ", " << v;
          }
        }
      }
    }
  }
}

// Every FP32 exponent, with significands just below, at and above the ties of every rounding. Splits them as
// vectors of one element, then as one vector.
TEST(Splits, EveryExponentIsSplitAsOnTheHost) {
  std::vector<float> values;
  for (std::uint32_t field = 0; field <= 255; ++field) {
    for (const std::uint32_t fraction : {0U, 1U, 0xfffU, 0x1000U, 0x1001U, 0x3000U, 0x7fffU, 0x8000U, 0x8001U,
                                         0x18000U, 0x7e0000U, 0x7dffffU, 0x7fe000U, 0x7ff000U, 0x7fffffU}) {
      for (const std::uint32_t sign : {0U, 0x80000000U})
        values.push_back(std::bit_cast<float>(sign | field << 23 | fraction));
    }
  }
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<NamedRule> rules = scheme_rules(OperandType::f32);
  for (const NamedRule& rule : made_rules()) rules.push_back(rule);
  for (const NamedRule& rule : rules) {
    for (const bool one_vector : {false, true}) {
      Operand<float> operand(1, 1, Layout::along_k, 0, 1);
      operand.values = values;
      operand.matrix.rows = one_vector ? 1 : count;
      operand.matrix.columns = one_vector ? count : 1;
      operand.matrix.row_stride = operand.matrix.column_stride = 1;
      const DeviceOperand<float> device(operand, rule.rule, 0);
      const DeviceSplit split = device.split();
      core::cuda::split({}, {&split, 1}, {});
      expect_host(device, operand,
                  fmt::format("{} ({}), one vector: {}", rule.name, text_of(rule.rule), one_vector));
      if (HasFailure()) return;
    }
  }
}

TEST(Splits, BothOperandsInOneCallHaveTheHostsSlices) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  const std::vector<NamedRule> rules = scheme_rules(OperandType::f32);
  for (int round = 0; round < 60 && !HasFailure(); ++round) {
    const std::int64_t k = random.integer(1, round < 40 ? 300 : 3000);
    const auto layout = [&] { return layouts[static_cast<std::size_t>(random.integer(0, 2))]; };
    const Operand<float> a(random.integer(1, 300), k, layout(), 0, random.bits());
    const Operand<float> b(random.integer(1, 300), k, layout(), 1, random.bits());
    const SplitRule& rule_a = rules[static_cast<std::size_t>(random.bits() % rules.size())].rule;
    const SplitRule& rule_b =
        random.flip() ? rule_a : rules[static_cast<std::size_t>(random.bits() % rules.size())].rule;
    const DeviceOperand<float> device_a(a, rule_a, 0);
    const DeviceOperand<float> device_b(b, rule_b, 1);
    const std::array splits{device_a.split(), device_b.split()};
    core::cuda::split({}, splits, {});
    const auto text = [&](const Operand<float>& operand, const SplitRule& rule) {
      return fmt::format("{}, {}, seed {}, round {}", text_of(rule), operand.text(), seed, round);
    };
    expect_host(device_a, a, text(a, rule_a));
    expect_host(device_b, b, text(b, rule_b));
  }
}

// One operand with element stride 1 and one with vector stride 1: on Hopper one launch splits both.
template <class T>
void check_different_layouts(const char* name, std::int64_t m, std::int64_t n, std::int64_t k,
                             bool across_first, std::uint64_t seed) {
  const Scheme& scheme = *find_scheme(name);
  Program program = scheme.program;
  if (scheme.fit != nullptr)
    scheme.fit(program, std::is_same_v<T, float> ? OperandType::f32 : OperandType::f64, k);
  Random random(seed);
  const Layout layout_a = across_first ? Layout::across : Layout::along_k;
  const Layout layout_b = across_first ? Layout::along_k : Layout::across;
  const std::size_t offset = random.flip() ? 1 : 0;
  const Operand<T> a(m, k, layout_a, offset, random.bits());
  const Operand<T> b(n, k, layout_b, offset, random.bits());
  const DeviceOperand<T> device_a(a, program.split_a, offset);
  const DeviceOperand<T> device_b(b, program.split_b, offset);
  const std::string text = fmt::format("{}, seed {}: ", name, seed);
  for (const bool ranges_known : {false, true}) {
    std::array splits{device_a.split(), device_b.split()};
    splits[0].ranges_known = splits[1].ranges_known = ranges_known;
    core::cuda::split({}, splits, {});
    expect_host(device_a, a, fmt::format("{}{}, ranges known: {}", text, a.text(), ranges_known));
    expect_host(device_b, b, fmt::format("{}{}, ranges known: {}", text, b.text(), ranges_known));
    core::cuda::clear({}, device_a.slices.data(), device_a.slices.size());
    core::cuda::clear({}, device_b.slices.data(), device_b.slices.size());
  }
}

TEST(Splits, DifferentLayoutsInOneCallGiveTheHostsSlices) {
  Random random(fresh_seed());
  // Around what one, two, four and eight warps and clusters of both sizes hold of a vector; and longer ones.
  constexpr std::array lengths{1,    3,    63,   64,   65,   128,  1000, 1024, 1025,  2048,
                               2049, 3000, 4096, 4097, 4400, 8192, 8193, 9999, 16384, 60000};
  for (const std::int64_t k : lengths) {
    const std::int64_t max_vectors = k > 5000 ? 40 : 300;
    for (const bool across_first : {true, false}) {
      for (const char* name : {"fp16x3", "fp16x3-wide", "legemm", "bf16x6", "tf32x3", "int8x6", "quantensor",
                               "ozaki2:moduli=8"}) {
        if (HasFailure()) return;
        if (k > 5000 && std::string_view(name) != "fp16x3" && random.integer(0, 3) != 0) continue;
        check_different_layouts<float>(name, random.integer(1, max_vectors), random.integer(1, max_vectors),
                                       k, across_first, random.bits());
      }
      for (const char* name : {"ozaki2:moduli=15", "ozaki-int8"}) {
        if (HasFailure()) return;
        check_different_layouts<double>(name, random.integer(1, max_vectors), random.integer(1, max_vectors),
                                        k, across_first, random.bits());
      }
    }
  }
}

TEST(Splits, UnselectedCandidateWritesNothingOfDifferentLayouts) {
  DeviceSelection chosen;
  chosen.candidate = 1;
  const DeviceArray<DeviceSelection> selection(std::vector<DeviceSelection>{chosen});
  const SplitRule& rule = find_scheme("fp16x3")->program.split_a;
  const Operand<float> a(130, 700, Layout::across, 0, 7);
  const Operand<float> b(90, 700, Layout::along_k, 0, 8);
  const DeviceOperand<float> device_a(a, rule, 0);
  const DeviceOperand<float> device_b(b, rule, 0);
  const std::array splits{device_a.split(), device_b.split()};
  core::cuda::split({}, splits, {selection.data(), 0});
  for (const auto* device : {&device_a, &device_b}) {
    for (const std::byte byte : device->slices.host())
      ASSERT_EQ(byte, std::byte{DeviceArray<std::byte>::poison});
  }
  core::cuda::split({}, splits, {selection.data(), 1});
  expect_host(device_a, a, "the candidate that was chosen, A");
  expect_host(device_b, b, "the candidate that was chosen, B");
}

// Splits an operand in blocks of vectors. Where ranges are known, splits only set the scale.
TEST(Splits, BlocksAndKnownRangesGiveTheHostsSlices) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  for (const NamedRule& rule : scheme_rules(OperandType::f32)) {
    for (const Layout layout : layouts) {
      const Operand<float> operand(333, 200, layout, 0, random.bits());
      const DeviceOperand<float> device(operand, rule.rule, 0);
      const DeviceSplit all_vectors = device.split();
      const std::string text = fmt::format("{}, {}, seed {}", text_of(rule.rule), operand.text(), seed);
      const HostSplit host = split_on_host(operand.view(), rule.rule);
      std::vector<VectorRange> known_ranges = host.ranges;
      for (VectorRange& range : known_ranges) range.scale = 12345;
      core::cuda::copy_to_device({}, device.ranges.data(), known_ranges.data(),
                                 known_ranges.size() * sizeof(VectorRange));
      for (const bool is_known : {true, false}) {
        for (std::int64_t first = 0; first < 333; first += 128) {
          DeviceSplit block = all_vectors;
          block.first = first;
          block.slices = all_vectors.slices.block(first, std::min<std::int64_t>(128, 333 - first));
          block.ranges_known = is_known;
          core::cuda::split({}, {&block, 1}, {});
        }
        expect_host(device, operand, text);
        core::cuda::clear({}, device.slices.data(), device.slices.size());
      }
      if (HasFailure()) return;
    }
  }
}

TEST(Splits, ItemsOfABatchHaveTheHostsSlices) {
  const std::uint64_t seed = fresh_seed();
  const SplitRule& rule = find_scheme("fp16x3")->program.split_a;
  for (const Layout layout : layouts) {
    const Operand<double> first(20, 70, layout, 0, seed);
    const Operand<double> second(20, 70, layout, 0, seed);  // of the same strides
    Operand<double> changed = second;
    for (double& x : changed.values) x = -x / 3;
    const DeviceOperand<double> device(first, rule, 0);
    const DeviceArray<double> changed_values(changed.values, 1);
    const DeviceArray<const void*> pointers(
        std::vector<const void*>{device.values.data(), changed_values.data()});
    DeviceSplit split = device.split();
    split.side.matrix.data = pointers.data();
    split.side.matrix.pointers = true;
    split.side.item = 1;
    core::cuda::split({}, {&split, 1}, {});
    expect_host(device, changed, fmt::format("pointers, {}, seed {}", changed.text(), seed));
    // Items that are a stride apart.
    std::vector<double> batch_values = first.values;
    batch_values.resize(batch_values.size() + 3);
    batch_values.insert(batch_values.end(), changed.values.begin(), changed.values.end());
    const DeviceArray<double> batch(batch_values);
    split.side.matrix.data = batch.data();
    split.side.matrix.pointers = false;
    split.side.matrix.batch_stride = static_cast<std::int64_t>(first.values.size()) + 3;
    core::cuda::clear({}, device.slices.data(), device.slices.size());
    core::cuda::split({}, {&split, 1}, {});
    expect_host(device, changed, fmt::format("strides, {}, seed {}", changed.text(), seed));
  }
}

TEST(Splits, UnselectedCandidateWritesNothing) {
  DeviceSelection chosen;
  chosen.candidate = 2;
  const DeviceArray<DeviceSelection> selection(std::vector<DeviceSelection>{chosen});
  for (const char* name : {"fp16x3", "split-n", "int8x6"}) {
    for (const Layout layout : layouts) {
      const Operand<float> operand(40, 100, layout, 0, 7);
      const DeviceOperand<float> device(operand, find_scheme(name)->program.split_a, 0);
      const DeviceSplit split = device.split();
      for (const std::int32_t candidate : {0, 1, 3, DeviceSelection::scaled, DeviceSelection::none})
        core::cuda::split({}, {&split, 1}, {selection.data(), candidate});
      for (const std::byte byte : device.slices.host())
        ASSERT_EQ(byte, std::byte{DeviceArray<std::byte>::poison}) << name << ", " << name_of(layout);
      constexpr std::uint32_t poison = 0x01010101U * DeviceArray<std::byte>::poison;
      constexpr auto number = static_cast<std::int32_t>(poison);
      const std::vector<VectorRange> untouched(device.ranges.size(),
                                               {number, number, number, number, poison, number, number});
      expect_same_ranges(device.ranges.host(), untouched, name);
      core::cuda::split({}, {&split, 1}, {selection.data(), 2});
      expect_host(device, operand, name);
    }
  }
}

TEST(Splits, EmptyOperandsAreNoError) {
  const SplitRule& rule = find_scheme("fp16x3")->program.split_a;
  for (const bool empty_k : {false, true}) {
    Operand<float> operand(empty_k ? 3 : 0, empty_k ? 0 : 3, Layout::along_k, 0, 1);
    const DeviceOperand<float> device(operand, rule, 0);
    DeviceSplit split = device.split();
    split.side.matrix.data = nullptr;
    core::cuda::split({}, {&split, 1}, {});
    expect_host(device, operand, "nothing");
  }
}

// Two vectors, and then the two elements of each vector, are more than 2^31 elements apart.
TEST(Splits, StridesBeyond31BitsGiveTheHostsSlices) {
  constexpr std::int64_t stride = (std::int64_t{1} << 31) + 5;
  constexpr std::int64_t line_length = 100;
  cuda::Address memory = 0;
  cuda::check(cuda::driver().memory_allocate(&memory, (stride + line_length) * sizeof(float)), "cuMemAlloc");
  Operand<float> far_vectors(2, line_length, Layout::along_k, 0, fresh_seed());
  Operand<float> far_elements = far_vectors;
  far_elements.matrix.rows = line_length;
  far_elements.matrix.columns = 2;
  std::swap(far_elements.matrix.row_stride, far_elements.matrix.column_stride);
  auto* values = reinterpret_cast<float*>(memory);
  for (std::int64_t v = 0; v < 2; ++v) {
    core::cuda::copy_to_device({}, values + v * stride,
                               far_vectors.values.data() + v * far_vectors.matrix.row_stride,
                               line_length * sizeof(float));
  }
  for (const char* name : {"fp16x3", "split-n:format=fp8_e4m3"}) {
    for (const Operand<float>* operand : {&far_vectors, &far_elements}) {
      const DeviceOperand<float> device(*operand, find_scheme(name)->program.split_a, 0);
      DeviceSplit split = device.split();
      split.side.matrix.data = values;
      (operand == &far_vectors ? split.side.matrix.row_stride : split.side.matrix.column_stride) = stride;
      core::cuda::split({}, {&split, 1}, {});
      expect_host(device, *operand, fmt::format("{}, {}, stride {}", name, operand->text(), stride));
      const Operand<float> other(3, 3, Layout::along_k, 0, 1);
      const DeviceOperand<float> device_other(other, device.rule, 0);
      core::cuda::find_ranges({}, split.side, device_other.split().side, {});
      expect_same_ranges(device.ranges.host(), split_on_host(operand->view(), device.rule).ranges,
                         "find_ranges", false);
    }
  }
  cuda::driver().memory_free(memory);
}

}  // namespace
}  // namespace kintsugi::test
