// Splits of vectors that are too long for a thread block or a cluster to hold give the bits of the host's
// loops.
#include "gpu/split/split_cases.hpp"

namespace kintsugi::test {
namespace {

template <class T>
class SplitsOfLong : public testing::Test {};
TYPED_TEST_SUITE(SplitsOfLong, EveryType);

// Every rule, with vectors that are divided, since a cluster (vector stride 1) or a thread block (element
// stride 1) cannot hold them.
TYPED_TEST(SplitsOfLong, VectorsInPartsHaveTheHostsSlices) {
  Random random(fresh_seed());
  for (const NamedRule& rule : rules_of<TypeParam>()) {
    for (const Layout layout : layouts) {
      const std::int64_t longest = layout == Layout::along_k ? 64000 : 20000;
      check_split<TypeParam>(rule, random.integer(1, 5), random.integer(longest - 6000, longest), layout,
                             random.flip() ? 1 : 0, random.bits());
      if (this->HasFailure()) return;
    }
  }
}

// Lengths around multiples of the parts (1024, 4096 and 8192 elements), and numbers of vectors around the
// panels (8, 16 and 32).
TEST(LongSplits, EdgesOfPartsHaveTheHostsSlices) {
  Random random(fresh_seed());
  constexpr std::array edges{1, 7, 8, 9, 15, 16, 17, 31, 32, 33};
  for (const std::int64_t length : {57344, 57345, 65535, 65536, 65537}) {
    for (const Layout layout : {Layout::along_k, Layout::across}) {
      const char* name =
          std::array{"fp16x3", "bf16x6", "tf32x3"}[static_cast<std::size_t>(random.integer(0, 2))];
      check_split<float>({name, find_scheme(name)->program.split_a},
                         edges[static_cast<std::size_t>(random.integer(0, 9))], length, layout,
                         random.flip() ? 1 : 0, random.bits());
      if (HasFailure()) return;
    }
  }
}

TEST(LongSplits, MillionsOfElementsHaveTheHostsSlices) {
  Random random(fresh_seed());
  for (const Layout layout : {Layout::along_k, Layout::across}) {
    check_split<float>({"fp16x3", find_scheme("fp16x3")->program.split_a}, 2,
                       (1 << 20) + random.integer(-1, 1), layout, 0, random.bits());
  }
}

// Splits both operands by one call that finds their ranges, or with known ranges: then first for a candidate
// that is not selected, which writes nothing.
TEST(LongSplits, BothOperandsInPartsHaveTheHostsSlices) {
  Random random(fresh_seed());
  for (int round = 0; round < 8 && !HasFailure(); ++round) {
    const SplitRule& rule = find_scheme(round % 2 == 0 ? "fp16x3" : "fp16x3-wide")->program.split_a;
    const auto layout = [&] { return layouts[static_cast<std::size_t>(random.integer(0, 2))]; };
    const std::int64_t length = random.integer(12000, 70000);
    const std::uint64_t seed = random.bits();
    const Operand<float> a(random.integer(1, 20), length, layout(), 0, seed);
    const Operand<float> b(random.integer(1, 20), length, layout(), 0, seed + 1);
    const DeviceOperand<float> device_a(a, rule, 0), device_b(b, rule, 0);
    const std::string text = fmt::format("{} and {}, seed {}", a.text(), b.text(), seed);
    std::array splits{device_a.split(), device_b.split()};
    if (round % 3 == 0) {
      core::cuda::find_ranges({}, splits[0].side, splits[1].side, {});
      splits[0].ranges_known = splits[1].ranges_known = true;
      const DeviceArray<DeviceSelection> selection(std::vector<DeviceSelection>(1));  // candidate 0
      const std::vector<std::byte> before = device_a.slices.host();
      core::cuda::split({}, splits, {selection.data(), 1});
      EXPECT_EQ(device_a.slices.host(), before) << text;
      core::cuda::split({}, splits, {selection.data(), 0});
      core::cuda::synchronize(Queue{});  // since the selection is freed now
    } else {
      core::cuda::split({}, splits, {});
    }
    expect_host(device_a, a, text);
    expect_host(device_b, b, text);
  }
}

}  // namespace
}  // namespace kintsugi::test
