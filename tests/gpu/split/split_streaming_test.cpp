// Splits of FP64 operands with known ranges into residues, most of which stream through shared memory, give
// the bits of the host's loops.
#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/select/selected_moduli.hpp"
#include "gpu/split/norm_cases.hpp"
#include "split/norms.hpp"

namespace kintsugi::test {
namespace {

// Residues of integers of eight and of twelve digits, by even and odd numbers of moduli.
constexpr std::array streamed_moduli{7, 16, 17, 18, 19, 20, 22, 23, 24, 25, 26};

SplitRule streamed_rule(int moduli, std::int64_t k, bool by_norms) {
  if (by_norms) return rule_by_norms(moduli, k);
  const Scheme& scheme = *find_scheme(fmt::format("ozaki2:moduli={}", moduli));
  return fitted_program(scheme, OperandType::f64, k).split_a;
}

// An operand on the device whose ranges and norms are known; its scales are not.
struct KnownOperand {
  KnownOperand(const Operand<double>& host, const SplitRule& rule, std::size_t offset)
      : operand(host), device(host, rule, offset), expected(split_on_host(host.view(), rule)),
        norms(norms_on_host(host.view(), expected.ranges)) {
    if (rule.scales == ScaleRule::norm) split_host_by_norms(rule);
    std::vector<VectorRange> known = expected.ranges;
    for (VectorRange& range : known) range.scale = 12345;
    core::cuda::copy_to_device({}, device.ranges.data(), known.data(), known.size() * sizeof(VectorRange));
  }

  void split_host_by_norms(const SplitRule& rule) {
    scale_by_norms(operand.view(), rule, expected.ranges, 4);
    Slices slices = slices_of(rule, operand.view().rows, operand.view().columns);
    slices.data = expected.slices.data();
    split_operand(operand.view(), rule, expected.ranges, slices, 4);
  }

  DeviceSplit split() const {
    DeviceSplit split = device.split();
    split.side.norms = norms.data();
    split.ranges_known = true;
    return split;
  }

  void expect_host(const std::string& text) const {
    expect_same_ranges(device.ranges.host(), expected.ranges, text);
    expect_same_slices(device.slices.host(), expected, operand.view(), device.rule, text);
  }

  const Operand<double>& operand;
  DeviceOperand<double> device;
  HostSplit expected;
  DeviceArray<VectorNorm> norms;
};

Layout draw_layout(Random& random) { return random.flip() ? Layout::along_k : Layout::across; }

// Lengths around the groups (8), the padding (64), the tiles (256, and 512 elements a warp) and the shortest
// vectors that are streamed.
std::int64_t draw_length(Random& random) {
  constexpr std::array edges{193, 256, 257, 320, 1024, 2048, 2112, 4096, 6144};
  if (random.flip()) return random.integer(193, 2500);
  return edges[static_cast<std::size_t>(random.integer(0, edges.size() - 1))] + random.integer(-1, 1);
}

TEST(StreamingSplits, GiveTheHostsSlices) {
  Random random(fresh_seed());
  for (const int moduli : streamed_moduli) {
    for (const Layout layout : {Layout::along_k, Layout::across}) {
      for (const bool by_norms : {false, true}) {
        if (by_norms && (moduli < 15 || moduli > 24)) continue;
        const std::int64_t k = draw_length(random);
        const std::size_t offset = random.flip() ? 1 : 0;
        const std::uint64_t seed = random.bits();
        const Operand<double> operand(random.integer(1, 300), k, layout, offset, seed);
        const KnownOperand known(operand, streamed_rule(moduli, k, by_norms), offset);
        const DeviceSplit split = known.split();
        core::cuda::split({}, {&split, 1}, {});
        known.expect_host(fmt::format("{} moduli{}, {}, seed {}", moduli, by_norms ? " by norms" : "",
                                      operand.text(), seed));
        if (HasFailure()) return;
      }
    }
  }
}

// Both operands in one launch, of the same layout or of different ones. A launch for a candidate that was not
// selected writes nothing and stores no scale.
TEST(StreamingSplits, OfBothOperandsGiveTheHostsSlices) {
  Random random(fresh_seed());
  const DeviceArray<DeviceSelection> selection(std::vector<DeviceSelection>(1));  // candidate 0
  for (int round = 0; round < 24 && !HasFailure(); ++round) {
    const std::int64_t k = draw_length(random);
    const int moduli = static_cast<int>(random.integer(18, 24));
    const SplitRule rule = streamed_rule(moduli, k, false);
    const Operand<double> a(random.integer(1, 400), k, draw_layout(random), 0, random.bits());
    const Operand<double> b(random.integer(1, 400), k, draw_layout(random), 0, random.bits());
    const KnownOperand known_a(a, rule, 0), known_b(b, rule, 0);
    const std::array splits{known_a.split(), known_b.split()};
    const std::string text = fmt::format("{} moduli, {} and {}", moduli, a.text(), b.text());
    const std::vector<std::byte> before = known_b.device.slices.host();
    core::cuda::split({}, splits, {selection.data(), 1});
    EXPECT_EQ(known_b.device.slices.host(), before) << text;
    EXPECT_EQ(known_b.device.ranges.host()[0].scale, 12345) << text;
    core::cuda::split({}, splits, {selection.data(), 0});
    known_a.expect_host(text);
    known_b.expect_host(text);
  }
}

std::vector<DeviceSelection> selections_of(std::int32_t candidate) {
  std::vector<DeviceSelection> selections(1);
  selections.front().candidate = candidate;
  return selections;
}

// Rules of candidates by norms of `least` to `most` moduli.
std::vector<SplitRule> rules_by_norms(int least, int most, std::int64_t k) {
  std::vector<SplitRule> rules;
  for (int moduli = least; moduli <= most; ++moduli) rules.push_back(rule_by_norms(moduli, k));
  return rules;
}

// Expects the slices of the rule, which are the first of those that were found.
void expect_first_slices(const KnownOperand& found, const SplitRule& rule, const std::string& text) {
  const Operand<double>& operand = found.operand;
  const KnownOperand expected(operand, rule, 0);
  std::vector<std::byte> slices = found.device.slices.host();
  slices.resize(expected.expected.slices.size());
  expect_same_ranges(found.device.ranges.host(), expected.expected.ranges, text);
  expect_same_slices(slices, expected.expected, operand.view(), rule, text);
}

// Candidates of several numbers of moduli share a launch, which takes the number from the selection. Operands
// that are not streamed have a launch for each candidate. Nothing is written if another one is selected.
TEST(StreamingSplits, OfSharedCandidatesGiveTheSlicesOfTheSelectedOne) {
  if (!core::cuda::current_family().has_clusters) GTEST_SKIP() << "the device has no shared kernels";
  Random random(fresh_seed());
  constexpr std::int32_t first = 1;
  for (int round = 0; round < 40 && !HasFailure(); ++round) {
    const bool streams = round % 4 != 0;
    const std::int64_t k = streams ? draw_length(random) : random.integer(1, 700);
    const auto layout = [&] {
      return streams ? draw_layout(random) : layouts[static_cast<std::size_t>(random.integer(0, 2))];
    };
    const Operand<double> a(random.integer(1, 400), k, layout(), 0, random.bits());
    const Operand<double> b(random.integer(1, 400), k, layout(), 0, random.bits());
    const int least = static_cast<int>(random.integer(16, 18));
    const int most = static_cast<int>(random.integer(least + 1, 20));
    const std::vector<SplitRule> rules = rules_by_norms(least, most, k);
    ASSERT_TRUE(core::cuda::shares_kernels(ElementType::f64, rules.front(), rules.back()));
    const KnownOperand known_a(a, rules.back(), 0), known_b(b, rules.back(), 0);
    const std::array splits{known_a.split(), known_b.split()};
    const std::vector<std::byte> before = known_a.device.slices.host();
    for (const std::int32_t other : {first - 1, first + most - least + 1, DeviceSelection::scaled}) {
      const DeviceArray<DeviceSelection> selection(selections_of(other));
      core::cuda::split_selected({}, splits, rules, {selection.data(), first, least, most});
      EXPECT_EQ(known_a.device.slices.host(), before) << "candidate " << other;
      EXPECT_EQ(known_b.device.ranges.host()[0].scale, 12345) << "candidate " << other;
    }
    const auto candidate = static_cast<std::int32_t>(random.integer(first, first + most - least));
    const DeviceArray<DeviceSelection> selection(selections_of(candidate));
    core::cuda::split_selected({}, splits, rules, {selection.data(), first, least, most});
    const std::string text = fmt::format("{} of {} to {} moduli, {} and {}", least + candidate - first, least,
                                         most, a.text(), b.text());
    const SplitRule& rule = rules[static_cast<std::size_t>(candidate - first)];
    expect_first_slices(known_a, rule, text);
    expect_first_slices(known_b, rule, text);
  }
}

// More tiles than the device holds thread blocks, so that every thread block goes through several tiles of
// both operands.
TEST(StreamingSplits, OfManyTilesGiveTheHostsSlices) {
  Random random(fresh_seed());
  const std::int64_t k = random.integer(1500, 1600);
  const SplitRule rule = streamed_rule(19, k, false);
  const Operand<double> a(random.integer(1700, 1800), k, Layout::across, 0, random.bits());
  const Operand<double> b(random.integer(1700, 1800), k, Layout::along_k, 0, random.bits());
  const KnownOperand known_a(a, rule, 0), known_b(b, rule, 0);
  const std::array splits{known_a.split(), known_b.split()};
  core::cuda::split({}, splits, {});
  known_a.expect_host(a.text());
  known_b.expect_host(b.text());
}

template <class T>
void check_many_complex_tiles(int moduli, Layout layout, Random& random) {
  const std::int64_t k = random.integer(1200, 1400);
  const Scheme& scheme = *find_scheme(fmt::format("ozaki2:moduli={}", moduli));
  const OperandType type = std::is_same_v<RealOf<T>, double> ? OperandType::f64 : OperandType::f32;
  Program program = fitted_program(scheme, type, k);
  scheme.multiply_elements(program);
  check_split<T>({fmt::format("{} moduli", moduli), program.split_a}, random.integer(900, 1000), k, layout,
                 random.flip() ? 1 : 0, random.bits());
}

// The same of complex elements, by eight and by twelve digits.
TEST(StreamingSplits, OfManyComplexTilesGiveTheHostsSlices) {
  Random random(fresh_seed());
  for (const Layout layout : layouts) {
    check_many_complex_tiles<std::complex<float>>(8, layout, random);
    check_many_complex_tiles<std::complex<double>>(15, layout, random);
    check_many_complex_tiles<std::complex<double>>(20, layout, random);
    if (HasFailure()) return;
  }
}

// Vectors that no thread block or cluster holds, with padding of which nothing is read.
TEST(StreamingSplits, OfLongVectorsLeavePaddingUnwritten) {
  Random random(fresh_seed());
  for (const Layout layout : {Layout::along_k, Layout::across}) {
    const std::int64_t k = random.integer(30000, 70000);
    const Operand<double> operand(random.integer(1, 5), k, layout, 0, random.bits());
    KnownOperand known(operand, streamed_rule(20, k, false), 0);
    DeviceSplit split = known.split();
    split.needs_padding = false;
    core::cuda::split({}, {&split, 1}, {});
    const std::vector<std::byte> found = known.device.slices.host();
    constexpr std::int64_t written = 64;  // vectors of whole tiles
    const Slices& slices = split.slices;
    for (int s = 0; s < slices.count; ++s) {
      const auto unwritten =
          static_cast<std::size_t>(s * slices.slice_stride() + written * slices.vector_stride());
      EXPECT_EQ(found[unwritten], std::byte{DeviceArray<std::byte>::poison}) << "slice " << s;
      std::fill(known.expected.slices.begin() + static_cast<std::ptrdiff_t>(unwritten),
                known.expected.slices.begin() + (s + 1) * slices.slice_stride(),
                std::byte{DeviceArray<std::byte>::poison});
    }
    known.expect_host(operand.text());
  }
}

}  // namespace
}  // namespace kintsugi::test
