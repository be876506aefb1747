// Compares splits of complex operands for one step of Strassen's algorithm with residues of sums of the
// host's integers.
#include "arith/residue/strassen.hpp"

#include <algorithm>

#include "gpu/split/norm_cases.hpp"

namespace kintsugi::test {
namespace {

__extension__ using Wide = __int128;
using Integers = std::array<Wide, strassen_products>;

// Shape of a drawn operand: `items` matrices, of which vectors from `first` on are split.
struct ComplexShape {
  std::int64_t items;
  std::int64_t vectors;
  std::int64_t length;
  std::int64_t first;
  Layout layout;
  std::size_t offset;  // doubles from an aligned address
};

// Splits without Strassen's algorithm give the ranges.
SplitRule for_strassen(SplitRule rule) {
  rule.slices *= strassen_products;
  rule.strassen = true;
  return rule;
}

// An operand and the memory that its split writes. The items are contiguous groups of the drawn matrix's
// rows.
struct ComplexStrassenOperand {
  ComplexStrassenOperand(const SplitRule& plain_rule, const ComplexShape& drawn_shape, std::uint64_t seed)
      : shape(drawn_shape),
        operand(shape.items * shape.vectors, shape.length, shape.layout, shape.offset, seed),
        rule(for_strassen(plain_rule)), plain(plain_rule),
        layout(
            make_slices(rule, SliceStorage::packed, strassen_half(vectors()), strassen_half(shape.length))),
        values(doubles(), shape.offset), ranges(static_cast<std::size_t>(operand.matrix.vectors())),
        norms(ranges.size()), slices(static_cast<std::size_t>(shape.items) * layout.bytes()) {}

  std::vector<double> doubles() const {
    std::vector<double> result(2 * operand.values.size());
    std::memcpy(result.data(), operand.values.data(), result.size() * sizeof(double));
    return result;
  }
  std::int64_t vectors() const { return shape.vectors - shape.first; }
  // Number of real vectors that stand for a complex one.
  std::int64_t real_vectors() const { return operand.matrix.right ? 2 : 1; }

  DeviceSplit split() const {
    DeviceSplit split;
    split.side.matrix = operand.matrix;
    split.side.matrix.rows = shape.vectors;
    split.side.matrix.batch_stride = shape.vectors * operand.matrix.row_stride;
    split.side.matrix.data = values.data();
    split.side.ranges = ranges.data();
    split.side.norms = rule.scales == ScaleRule::norm ? norms.data() : nullptr;
    split.side.items = shape.items;
    split.first = shape.first;
    split.rule = &rule;
    split.slices = layout;
    split.slices.data = slices.data();
    split.vectors = vectors();
    return split;
  }

  // Plain slices and ranges of the same vectors.
  std::vector<VectorRange> plain_ranges() const {
    Slices plain_layout = slices_of(plain, vectors(), shape.length);
    const DeviceArray<std::byte> plain_slices(static_cast<std::size_t>(shape.items) * plain_layout.bytes());
    const DeviceArray<VectorRange> found(ranges.size());
    DeviceSplit split = this->split();
    split.side.ranges = found.data();
    split.rule = &plain;
    split.slices = plain_layout;
    split.slices.data = plain_slices.data();
    split_with_norms(split);
    return found.host();
  }
  void split_with_norms(DeviceSplit& split, const DeviceCondition& condition = {}) const {
    split.ranges_known = split.side.norms != nullptr;
    if (split.ranges_known) device_engine().find_norms({}, split.side, no_side(shape.items), {});
    device_engine().split({}, {&split, 1}, condition);
  }

  std::string text() const {
    return fmt::format("{}, {} items, first {}, {} moduli with a root and {} without, scale by {}",
                       operand.text(), shape.items, shape.first, rule.complex_basis.with_root,
                       rule.complex_basis.without, scale_rule_name(rule.scales));
  }

  ComplexShape shape;
  Operand<std::complex<double>> operand;
  SplitRule rule;
  SplitRule plain;
  Slices layout;
  DeviceArray<double> values;
  DeviceArray<VectorRange> ranges;
  DeviceArray<VectorNorm> norms;
  DeviceArray<std::byte> slices;
};

// Part (0: real, 1: imaginary) of the integer of element p of a split vector; zero beyond the operand.
Wide integer_of(const ComplexStrassenOperand& split, const std::vector<VectorRange>& ranges,
                std::int64_t item, std::int64_t v, std::int64_t p, int part) {
  if (v >= split.vectors() || p >= split.shape.length) return 0;
  const DeviceMatrix& matrix = split.operand.matrix;
  const std::int64_t row = item * split.shape.vectors + split.shape.first + v;
  double parts[2];
  std::memcpy(
      parts,
      &split.operand.values[static_cast<std::size_t>(row * matrix.row_stride + p * matrix.column_stride)],
      sizeof parts);
  const double x = part == 1 && matrix.conjugated ? -parts[1] : parts[part];
  const TwoFactors factors = two_factors(ranges[static_cast<std::size_t>(split.real_vectors() * row)].scale);
  return std::isfinite(x) ? static_cast<Wide>(nearest_integer(x * factors.first * factors.second)) : 0;
}

// The operands' integers of one quad.
Integers sums_of(const ComplexStrassenOperand& split, const std::vector<VectorRange>& ranges,
                 std::int64_t item, std::int64_t v, std::int64_t p, int part) {
  const auto integer = [&](std::int64_t dv, std::int64_t dp) {
    return integer_of(split, ranges, item, v + dv, p + dp, part);
  };
  constexpr std::int64_t d = strassen_group;
  if (split.operand.matrix.right)
    return right_operands(integer(0, 0), integer(d, 0), integer(0, d), integer(d, d));
  return left_operands(integer(0, 0), integer(0, d), integer(d, 0), integer(d, d));
}

// Residue of slice s of the basis.
std::byte residue_of(const ComplexBasis& basis, int s, Wide re, Wide im) {
  int t = basis.count() - 1;
  while (basis.first_slice(t) > s) --t;
  const int m = basis.modulus(t);
  const int index = s - basis.first_slice(t);
  const Wide a = re % m;
  const Wide b = im % m;
  const Wide sum = basis.has_root(t) ? (index == 0 ? a + basis.root(t) * b : a - basis.root(t) * b)
                                     : (index == 0   ? a
                                        : index == 1 ? b
                                                     : a + b);
  return static_cast<std::byte>(small_residue(static_cast<double>(sum % m), m, 1.0 / m));
}

// Bytes of one item. Groups of indices that have no element of the operand are zeros.
std::vector<std::byte> slices_on_host(const ComplexStrassenOperand& split,
                                      const std::vector<VectorRange>& ranges, std::int64_t item) {
  const Slices& layout = split.layout;
  const ComplexBasis& basis = split.rule.complex_basis;
  std::vector<std::byte> slices(layout.bytes());
  const auto index_of_first = [](std::int64_t i) {
    return i / strassen_group * 2 * strassen_group + i % strassen_group;
  };
  for (std::int64_t h = 0; index_of_first(h) < split.vectors(); ++h) {
    for (std::int64_t j = 0; j / strassen_group * 2 * strassen_group < split.shape.length; ++j) {
      const Integers re = sums_of(split, ranges, item, index_of_first(h), index_of_first(j), 0);
      const Integers im = sums_of(split, ranges, item, index_of_first(h), index_of_first(j), 1);
      for (int s = 0; s < split.rule.slices; ++s) {
        const auto q = static_cast<std::size_t>(s / basis.slices());
        slices[static_cast<std::size_t>(s * layout.slice_stride() + h * layout.vector_stride() + j)] =
            residue_of(basis, s % basis.slices(), re[q], im[q]);
      }
    }
  }
  return slices;
}

void expect_slices(const ComplexStrassenOperand& split, const std::vector<VectorRange>& ranges,
                   const std::string& text) {
  const std::vector<std::byte> got = split.slices.host();
  const Slices& layout = split.layout;
  for (std::int64_t item = 0; item < split.shape.items; ++item) {
    const std::vector<std::byte> wanted = slices_on_host(split, ranges, item);
    const auto* const of_item = got.data() + static_cast<std::size_t>(item) * layout.bytes();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (of_item[i] == wanted[i]) continue;
      const auto index = static_cast<std::int64_t>(i);
      FAIL() << text << ": item " << item << ", slice " << index / layout.slice_stride() << ", vector "
             << index % layout.slice_stride() / layout.vector_stride() << ", element "
             << index % layout.vector_stride() << " is " << static_cast<int>(of_item[i]) << ", host "
             << static_cast<int>(wanted[i]);
    }
  }
}

// Compares the ranges of the vectors that are split.
void expect_ranges(const ComplexStrassenOperand& split, const std::vector<VectorRange>& wanted,
                   const std::string& text) {
  const std::vector<VectorRange> got = split.ranges.host();
  for (std::int64_t v = 0; v < split.operand.matrix.vectors(); ++v) {
    if (v / split.real_vectors() % split.shape.vectors < split.shape.first) continue;
    const auto i = static_cast<std::size_t>(v);
    ASSERT_TRUE(same_range(got[i], wanted[i], true)) << text << ": range of real vector " << v;
  }
}

// A rule for complex elements of FP64 with integers of at most 62 bits.
SplitRule complex_rule(int moduli, ScaleRule scales, std::int64_t length) {
  const Scheme& scheme =
      *find_scheme(fmt::format("ozaki2:moduli={}:scale={}", moduli, scale_rule_name(scales)));
  Program program = fitted_program(scheme, OperandType::f64, length);
  scheme.multiply_elements(program);
  return program.split_a;
}

void expect_splits(Random& random, std::uint64_t seed, std::int64_t vectors, std::int64_t length,
                   std::int64_t items) {
  constexpr std::array moduli_counts{3, 8, 13, 15, 16};
  const int moduli = moduli_counts[static_cast<std::size_t>(random.integer(0, 4))];
  const ScaleRule scales = random.flip() ? ScaleRule::norm : ScaleRule::exponent;
  const ComplexShape shape{items,
                           vectors,
                           length,
                           random.flip() ? 0 : random.integer(0, vectors - 1),
                           layouts[static_cast<std::size_t>(random.integer(0, 2))],
                           static_cast<std::size_t>(random.integer(0, 1))};
  const ComplexStrassenOperand operand(complex_rule(moduli, scales, 2 * length), shape, random.bits());
  const std::string text = fmt::format("{}, seed {}", operand.text(), seed);
  const std::vector<VectorRange> ranges = operand.plain_ranges();
  DeviceSplit split = operand.split();
  operand.split_with_norms(split);
  expect_ranges(operand, ranges, text);
  expect_slices(operand, ranges, text);
}

TEST(ComplexSplitsForStrassen, HaveTheHostsResidues) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  for (int round = 0; round < 60 && !HasFailure(); ++round)
    expect_splits(random, seed, random.integer(1, 60), random.integer(1, 300), random.integer(1, 3));
}
TEST(ComplexSplitsForStrassen, OfManyVectorsAndOfLongOnesHaveTheHostsResidues) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  for (int round = 0; round < 4 && !HasFailure(); ++round) {
    expect_splits(random, seed, random.integer(200, 700), random.integer(1, 30), 1);
    expect_splits(random, seed, random.integer(1, 10), random.integer(1000, 3000), 1);
  }
}

// Thread blocks of a split that is unlikely loop over tiles: 1000 vectors of 3000 elements have 768 tiles,
// more than thread blocks that an H200 holds at once.
TEST(ComplexSplitsForStrassen, AreWrittenIfTheirCandidateWasSelected) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  for (const Layout layout : {Layout::along_k, Layout::across}) {
    const ComplexStrassenOperand operand(complex_rule(3, ScaleRule::norm, 4000),
                                         {1, 1000, 3000, 0, layout, 0}, random.bits());
    const std::string text = fmt::format("{}, seed {}", operand.text(), seed);
    const std::vector<VectorRange> ranges = operand.plain_ranges();
    DeviceSelection selected{};
    selected.candidate = 1;
    const DeviceArray<DeviceSelection> selection(std::vector<DeviceSelection>{selected});
    DeviceSplit split = operand.split();
    split.unlikely = true;
    operand.split_with_norms(split, {selection.data(), 0});
    const std::vector<std::byte> untouched = operand.slices.host();
    const auto is_poison = [](std::byte x) { return x == std::byte{DeviceArray<std::byte>::poison}; };
    EXPECT_TRUE(std::all_of(untouched.begin(), untouched.end(), is_poison)) << text;
    operand.split_with_norms(split, {selection.data(), 1});
    expect_ranges(operand, ranges, text);
    expect_slices(operand, ranges, text);
  }
}

void expect_refused(const SplitRule& rule) {
  const ComplexStrassenOperand operand(rule, {1, 8, 100, 0, Layout::along_k, 0}, 1);
  const DeviceSplit split = operand.split();
  EXPECT_THROW(device_engine().split({}, {&split, 1}, {}), Error);
}

TEST(ComplexSplitsForStrassen, RefuseIntegersOfMoreThan62Bits) {
  expect_refused(complex_rule(25, ScaleRule::exponent, 200));
}

TEST(ComplexSplitsForStrassen, RefuseOtherNumbersOfSlices) {
  SplitRule rule = complex_rule(15, ScaleRule::exponent, 200);
  --rule.slices;
  expect_refused(rule);
}

}  // namespace
}  // namespace kintsugi::test
