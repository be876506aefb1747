// Splits of many short vectors give the bits of the host's loops.
#include "gpu/split/split_cases.hpp"

namespace kintsugi::test {
namespace {

// Least number of vectors of which each gets some threads instead of a thread block
// (engines/cuda/split/split_task.hpp).
constexpr std::int64_t min_many_vectors = 16384;

template <class T>
class SplitsOfMany : public testing::Test {};
TYPED_TEST_SUITE(SplitsOfMany, EveryType);

TYPED_TEST(SplitsOfMany, ShortVectorsHaveTheHostsSlices) {
  Random random(fresh_seed());
  const std::vector<NamedRule> rules = rules_of<TypeParam>();
  for (const std::int64_t length : {1, 8, 63, 64, 65, 129, 192, 256, 257}) {
    for (const Layout layout : layouts) {
      const NamedRule& rule = rules[static_cast<std::size_t>(random.bits() % rules.size())];
      check_split<TypeParam>(rule, min_many_vectors + random.integer(-1, 300), length, layout,
                             random.flip() ? 1 : 0, random.bits());
      if (this->HasFailure()) return;
    }
  }
}

// Slices of every element type that has a kernel of its own.
TEST(ManySplits, EveryKernelHasTheHostsSlices) {
  Random random(fresh_seed());
  for (const char* name :
       {"fp16x3", "fp16x3-wide", "bf16x6", "tf32x3", "int8x6", "quantensor", "ozaki2:moduli=8"}) {
    for (const Layout layout : layouts) {
      Program program = find_scheme(name)->program;
      if (find_scheme(name)->fit != nullptr) find_scheme(name)->fit(program, OperandType::f32, 200);
      check_split<float>({name, program.split_a}, min_many_vectors + 1, random.integer(1, 100), layout, 0,
                         random.bits());
      if (HasFailure()) return;
    }
  }
  for (const char* name : {"ozaki2:moduli=15", "ozaki2:moduli=20", "ozaki-int8"}) {
    for (const Layout layout : layouts) {
      Program program = find_scheme(name)->program;
      if (find_scheme(name)->fit != nullptr) find_scheme(name)->fit(program, OperandType::f64, 200);
      check_split<double>({name, program.split_a}, min_many_vectors + 1, random.integer(1, 100), layout, 0,
                          random.bits());
      if (HasFailure()) return;
    }
  }
}

// The operands of a thin product, of which one has few vectors: with depths, or with known ranges, then first
// for a candidate that is not selected, which writes nothing.
TEST(ManySplits, BothOperandsHaveTheHostsSlices) {
  Random random(fresh_seed());
  const SplitRule& rule = find_scheme("fp16x3")->program.split_a;
  for (int round = 0; round < 8 && !HasFailure(); ++round) {
    const auto layout = [&] { return layouts[static_cast<std::size_t>(random.integer(0, 2))]; };
    const std::int64_t length = random.integer(1, 256);
    const std::uint64_t seed = random.bits();
    const Operand<float> a(min_many_vectors + random.integer(0, 200), length, layout(), 0, seed);
    const Operand<float> b(random.integer(1, 70), length, layout(), 0, seed + 1);
    const DeviceOperand<float> device_a(a, rule, 0), device_b(b, rule, 0);
    std::array splits{device_a.split(), device_b.split()};
    if (round % 2 == 0) std::swap(splits[0], splits[1]);
    const std::string text = fmt::format("{} and {}, seed {}", a.text(), b.text(), seed);
    const DeviceArray<DeviceSelection> selection(std::vector<DeviceSelection>(1));  // candidate 0
    if (round % 3 == 0) {
      core::cuda::find_ranges({}, splits[0].side, splits[1].side, {});
      splits[0].ranges_known = splits[1].ranges_known = true;
      const std::vector<std::byte> before = device_a.slices.host();
      core::cuda::split({}, splits, {selection.data(), 1});
      EXPECT_EQ(device_a.slices.host(), before) << text;
      core::cuda::split({}, splits, {selection.data(), 0});
    } else {
      splits[0].finds_depth = splits[1].finds_depth = true;
      core::cuda::split({}, splits, {});
    }
    expect_host(device_a, a, text);
    expect_host(device_b, b, text);
  }
}

}  // namespace
}  // namespace kintsugi::test
