// Compares splits for one step of Strassen's algorithm with residues of sums of the host's integers.
#include "arith/residue/strassen.hpp"

#include "gpu/split/norm_cases.hpp"

namespace kintsugi::test {
namespace {

__extension__ using Wide = __int128;

// An operand's vectors from `first` on, and the memory that their split for Strassen's algorithm writes.
struct StrassenOperand {
  StrassenOperand(const Operand<double>& host, const SplitRule& plain_rule, std::int64_t first_vector)
      : operand(host), first(first_vector), rule(rule_for_strassen(plain_rule)),
        layout(make_slices(rule, SliceStorage::packed, strassen_half(vectors()),
                           strassen_half(host.matrix.columns))),
        values(host.values), ranges(static_cast<std::size_t>(host.matrix.rows)), norms(ranges.size()),
        slices(layout.bytes()) {}

  static SplitRule rule_for_strassen(SplitRule rule) {
    rule.slices *= strassen_products;
    rule.strassen = true;
    return rule;
  }
  std::int64_t vectors() const { return operand.matrix.rows - first; }
  DeviceSplit split() const {
    DeviceSplit split;
    split.side = {operand.matrix, 0, ranges.data(), 1, norms.data()};
    split.side.matrix.data = values.data();
    split.first = first;
    split.rule = &rule;
    split.slices = layout;
    split.slices.data = slices.data();
    split.vectors = vectors();
    return split;
  }

  const Operand<double>& operand;
  std::int64_t first;
  SplitRule rule;
  Slices layout;
  DeviceArray<double> values;
  DeviceArray<VectorRange> ranges;
  DeviceArray<VectorNorm> norms;
  DeviceArray<std::byte> slices;
};

// Integer of element p of a vector; zero if the operand has no such element.
Wide integer_of(const StrassenOperand& operand, const std::vector<VectorRange>& ranges, std::int64_t v,
                std::int64_t p) {
  const MatrixView<const double> view = operand.operand.view();
  if (v >= operand.vectors() || p >= view.columns) return 0;
  const double x = view(operand.first + v, p);
  const TwoFactors factors = two_factors(ranges[static_cast<std::size_t>(operand.first + v)].scale);
  return std::isfinite(x) ? static_cast<Wide>(nearest_integer(x * factors.first * factors.second)) : 0;
}

std::array<Wide, strassen_products> sums_of(const StrassenOperand& operand,
                                            const std::vector<VectorRange>& ranges, std::int64_t v,
                                            std::int64_t p) {
  const auto integer = [&](std::int64_t dv, std::int64_t dp) {
    return integer_of(operand, ranges, v + dv, p + dp);
  };
  constexpr std::int64_t d = strassen_group;
  if (operand.operand.matrix.right)
    return right_operands(integer(0, 0), integer(d, 0), integer(0, d), integer(d, d));
  return left_operands(integer(0, 0), integer(0, d), integer(d, 0), integer(d, d));
}

// Index of the operand's vector or element from which index i of the first half comes.
std::int64_t index_in_operand(std::int64_t i) {
  return i / strassen_group * 2 * strassen_group + i % strassen_group;
}

std::vector<std::byte> slices_on_host(const StrassenOperand& operand,
                                      const std::vector<VectorRange>& ranges) {
  const Slices& layout = operand.layout;
  std::vector<std::byte> slices(layout.bytes());
  const int count = operand.rule.slices / strassen_products;
  for (std::int64_t v = 0; v < layout.padded_vectors(); ++v) {
    for (std::int64_t p = 0; p < layout.vector_stride(); ++p) {
      const auto sums = sums_of(operand, ranges, index_in_operand(v), index_in_operand(p));
      if (sums == std::array<Wide, strassen_products>{}) continue;  // most vectors are padding
      for (int s = 0; s < operand.rule.slices; ++s) {
        const int modulus = moduli[static_cast<std::size_t>(s % count)];
        const auto rest = static_cast<double>(sums[static_cast<std::size_t>(s / count)] % modulus);
        slices[static_cast<std::size_t>(s * layout.slice_stride() + v * layout.vector_stride() + p)] =
            static_cast<std::byte>(small_residue(rest, modulus, 1.0 / modulus));
      }
    }
  }
  return slices;
}

void expect_slices(const StrassenOperand& operand, const std::vector<VectorRange>& ranges, bool ruled_out,
                   const std::string& text) {
  const std::vector<std::byte> got = operand.slices.host();
  const std::vector<std::byte> wanted = slices_on_host(operand, ranges);
  const Slices& layout = operand.layout;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == wanted[i]) continue;
    if (ruled_out && got[i] == std::byte{DeviceArray<std::byte>::poison}) continue;
    const auto index = static_cast<std::int64_t>(i);
    FAIL() << text << ": slice " << index / layout.slice_stride() << ", vector "
           << index % layout.slice_stride() / layout.vector_stride() << ", element "
           << index % layout.vector_stride() << " is " << static_cast<int>(got[i]) << ", host "
           << static_cast<int>(wanted[i]);
  }
}

// Splits both operands by norms, and again with known ranges. `plain` has splits of the same operands without
// Strassen's algorithm, whose ranges and norms must be the same.
bool expect_same_splits(const std::array<const StrassenOperand*, 2>& by_norms,
                        const std::array<const NormedOperand*, 2>& plain, bool in_one_call,
                        const std::string& text) {
  constexpr double coefficient = 1;
  const DeviceArray<DeviceSelection> selection(1);
  std::array splits{by_norms[0]->split(), by_norms[1]->split()};
  std::array plain_splits{plain[0]->split(), plain[1]->split()};
  core::cuda::split_by_norms({}, plain_splits, {}, coefficient, selection.data());
  const bool ruled_out = selection.host()[0].ruled_out != 0;
  bool strassen_ruled_out = false;
  const std::size_t together = in_one_call ? 2 : 1;
  for (std::size_t i = 0; i < splits.size(); i += together) {
    if (!core::cuda::finds_norms(splits[i])) {
      ADD_FAILURE() << "no kernel splits for Strassen's algorithm: " << text;
      return false;
    }
    core::cuda::split_by_norms({}, std::span(splits).subspan(i, together), {}, coefficient, selection.data());
    strassen_ruled_out = strassen_ruled_out || selection.host()[0].ruled_out != 0;
  }
  EXPECT_EQ(strassen_ruled_out, ruled_out) << text;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    const std::vector<VectorRange> ranges = plain[i]->device.ranges.host();
    expect_same_ranges(by_norms[i]->ranges.host(), ranges, text);
    EXPECT_EQ(bytes_of(by_norms[i]->norms), bytes_of(plain[i]->norms)) << text;
    expect_slices(*by_norms[i], ranges, ruled_out, text);
  }
  return ruled_out;
}

// The ranges and norms must be those of a split before.
void expect_known_split(const StrassenOperand& operand, const NormedOperand& plain, const std::string& text) {
  const std::vector<VectorRange> ranges = plain.device.ranges.host();
  DeviceSplit split = operand.split();
  core::cuda::find_norms({}, split.side, {}, {});
  split.ranges_known = true;
  core::cuda::split({}, {&split, 1}, {});
  const std::vector<VectorRange> found = operand.ranges.host();
  for (std::size_t v = static_cast<std::size_t>(operand.first); v < ranges.size(); ++v)
    ASSERT_EQ(found[v].scale, ranges[v].scale) << text << ", vector " << v;
  expect_slices(operand, ranges, false, text);
}

int expect_splits(std::int64_t vectors, std::int64_t shortest, std::int64_t longest, int rounds) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  int ruled_out = 0;
  for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
    const std::int64_t length = random.integer(shortest, longest);
    const SplitRule rule = rule_by_norms(round % 4 == 0 ? 16 : round % 2 == 0 ? 15 : 9, length);
    const Operand<double> a = draw_operand(random, vectors, length, round % 3 != 0);
    const Operand<double> b = draw_operand(random, vectors, length, round % 3 != 0);
    const std::string text =
        fmt::format("{} and {}, {} moduli, seed {}, round {}", a.text(), b.text(), rule.slices, seed, round);
    const NormedOperand plain_a(a, rule), plain_b(b, rule);
    const StrassenOperand operand_a(a, rule, 0), operand_b(b, rule, 0);
    ruled_out +=
        expect_same_splits({&operand_a, &operand_b}, {&plain_a, &plain_b}, round % 2 == 0, text) ? 1 : 0;
    const StrassenOperand known(a, rule, random.integer(0, a.matrix.rows - 1));
    expect_known_split(known, plain_a, text);
  }
  return ruled_out;
}

TEST(SplitsForStrassen, HaveTheHostsResiduesInSmallCases) {
  const int ruled_out = expect_splits(200, 1, 300, 30);
  EXPECT_GT(ruled_out, 4);
  EXPECT_LT(ruled_out, 21);
}
TEST(SplitsForStrassen, OfLongVectorsHaveTheHostsResidues) {
  expect_splits(12, 300, 5000, 6);
  expect_splits(9, 5000, 13056, 2);
  expect_splits(9, 13057, 17000, 2);  // columns by parts, rows as a whole
  expect_splits(9, 28300, 30000, 1);  // rows and columns by parts
}

TEST(SplitsForStrassen, AreRefusedIfNoKernelTakesThem) {
  const Operand<double> strided(8, 100, Layout::free, 0, 1);
  const StrassenOperand free(strided, rule_by_norms(15, 100), 0);
  EXPECT_FALSE(core::cuda::finds_norms(free.split()));
  DeviceSplit split = free.split();
  split.ranges_known = true;
  EXPECT_THROW(core::cuda::split({}, {&split, 1}, {}), Error);
}

}  // namespace
}  // namespace kintsugi::test
