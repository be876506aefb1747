// Algorithms 1 and 3 of dgemm-tc (docs/schemes/ozaki-fp16.md) on the device give the bits of the host's
// loops.
#include "engines/cuda/ozaki1/step_data.hpp"
#include "engines/cuda/steps.hpp"
#include "gpu/split/split_cases.hpp"
#include "split/ranges.hpp"
#include "split/successive.hpp"

namespace kintsugi::test {
namespace {

SplitRule successive_rule(bool wide, int bits, int slices, bool by_sigma = false) {
  SplitRule rule = scaled_split(wide ? fp64 : fp16, {.slices = slices, .residual_exponent = bits});
  rule.kind = SplitKind::successive;
  rule.sigma_grid = by_sigma;
  return rule;
}

// Algorithm 1 on the host: its memory and its results.
template <class T>
struct HostSlices {
  using Real = RealOf<T>;

  HostSlices(const OperandView<T>& view, const SplitRule& rule)
      : ranges(static_cast<std::size_t>(view.rows)),
        residuals(static_cast<std::size_t>(view.rows * view.columns)), tops(ranges.size()),
        lengths(ranges.size(), -1), weighted(ranges.size()) {
    find_ranges(view, rule, ranges, 1);
    split.bits = rule.residual_exponent;
    split.by_sigma = rule.sigma_grid;
    split.slices = make_slices(*rule.format, SliceStorage::packed, rule.slices, view.rows, view.columns);
    memory.assign(split.slices.bytes(), std::byte{0xee});
    split.slices.data = memory.data();
    exponents.resize(static_cast<std::size_t>(rule.slices * view.rows));
    split.exponents = {exponents.data(), rule.slices, view.rows, view.rows, 1};
    split.residuals = residuals.data();
    split.tops = tops.data();
    set_first_residuals(view, ranges, split, 1);
  }

  // Takes slice s, if there are so many, after it has noted which vectors need no more than s slices.
  void take(int s, const double* weights) {
    for (std::size_t v = 0; v < lengths.size(); ++v) {
      if (lengths[v] < 0 && tops[v] == no_residual) lengths[v] = s;
    }
    if (s < split.slices.count) take_slice(split, s, weights, weighted.data(), 1);
  }
  void take_all() {
    for (int s = 0; s <= split.slices.count; ++s) take(s, nullptr);
    for (std::int32_t& length : lengths) {
      if (length < 0) length = split.slices.count + 1;
    }
  }

  std::vector<VectorRange> ranges;
  std::vector<Residual> residuals;
  std::vector<std::int32_t> tops;
  std::vector<std::int32_t> exponents;
  std::vector<std::int32_t> lengths;
  std::vector<Scaled> weighted;
  std::vector<std::byte> memory;
  SuccessiveSplit split;
};

// Algorithm 1 on the device.
template <class T>
struct DeviceSlices {
  DeviceSlices(const Operand<T>& operand, const SplitRule& rule, std::size_t offset)
      : values(operand.values, offset), matrix(operand.matrix),
        ranges(static_cast<std::size_t>(matrix.vectors())),
        slices(
            make_slices(*rule.format, SliceStorage::packed, rule.slices, matrix.vectors(), matrix.length())),
        memory(slices.bytes()), exponents(static_cast<std::size_t>(slices.allocated_vectors * rule.slices)),
        lengths(static_cast<std::size_t>(slices.allocated_vectors)),
        unreachable(std::vector<std::int32_t>{0}), bits(rule.residual_exponent), by_sigma(rule.sigma_grid) {
    matrix.data = values.data();
    slices.data = memory.data();
    core::cuda::find_ranges({}, side(), {}, {});
  }

  DeviceSide side() const { return {matrix, 0, ranges.data()}; }
  DeviceSliceExponents slice_exponents() const {
    return {exponents.data(), slices.allocated_vectors, lengths.data()};
  }
  void split(DeviceSuccessiveSplit::Complete complete = DeviceSuccessiveSplit::Complete::unchecked,
             std::int32_t max_depth = 0, const DeviceBlockSliceCounts& slice_counts = {}) const {
    const DeviceSuccessiveSplit task{.side = side(),
                                     .first = 0,
                                     .slices = slices,
                                     .bits = bits,
                                     .by_sigma = by_sigma,
                                     .exponents = slice_exponents(),
                                     .complete = complete,
                                     .max_depth = max_depth,
                                     .slice_counts = slice_counts,
                                     .unreachable = unreachable.data()};
    core::cuda::split_successively({}, task, {});
  }

  DeviceArray<T> values;
  DeviceMatrix matrix;
  DeviceArray<VectorRange> ranges;
  Slices slices;
  DeviceArray<std::byte> memory;
  DeviceArray<std::int32_t> exponents;
  DeviceArray<std::int32_t> lengths;
  DeviceArray<std::int32_t> unreachable;
  int bits;
  bool by_sigma;
};

template <class T>
void expect_slices_of_the_host(const Operand<T>& operand, const SplitRule& rule, std::size_t offset) {
  SCOPED_TRACE(fmt::format("{}, {} slices of {} bits in {}", operand.text(), rule.slices,
                           rule.residual_exponent, rule.format->name));
  HostSlices<T> host(operand.view(), rule);
  host.take_all();
  const DeviceSlices<T> device(operand, rule, offset);
  device.split();
  const std::vector<std::int32_t> lengths = device.lengths.host();
  const std::vector<std::int32_t> exponents = device.exponents.host();
  for (std::size_t v = 0; v < host.lengths.size(); ++v) {
    ASSERT_EQ(lengths[v], host.lengths[v]) << "slices of vector " << v;
    for (int s = 0; s < rule.slices; ++s) {
      const auto slice_index = static_cast<std::size_t>(s);
      ASSERT_EQ(exponents[slice_index * static_cast<std::size_t>(device.slices.allocated_vectors) + v],
                host.exponents[slice_index * host.lengths.size() + v])
          << "slice " << s << " of vector " << v;
    }
  }
  const std::vector<std::byte> memory = device.memory.host();
  if (memory == host.memory) return;
  const auto byte = static_cast<std::size_t>(
      std::mismatch(memory.begin(), memory.end(), host.memory.begin()).first - memory.begin());
  const auto element = static_cast<std::int64_t>(byte / device.slices.element_bytes());
  const std::int64_t slice = element / device.slices.slice_stride();
  const std::int64_t in_slice = element % device.slices.slice_stride();
  FAIL() << "slice " << slice << " of vector " << in_slice / device.slices.vector_stride() << ", element "
         << in_slice % device.slices.vector_stride() << " differs: byte "
         << std::to_integer<int>(memory[byte]) << ", host " << std::to_integer<int>(host.memory[byte]);
}

template <class T>
class OzakiStepsOf : public testing::Test {};
TYPED_TEST_SUITE(OzakiStepsOf, EveryType);

TYPED_TEST(OzakiStepsOf, SlicesEqualTheHostsInSmallCases) {
  Random random(fresh_seed());
  for (const Layout layout : layouts) {
    for (int round = 0; round < 12; ++round) {
      const bool wide = random.flip();
      const auto bits = static_cast<int>(wide ? random.integer(5, 26) : random.integer(3, 11));
      const auto slices = static_cast<int>(random.integer(1, max_successive_slices));
      const std::uint64_t seed = random.bits();
      const std::size_t offset = random.flip() ? 1 : 0;
      const Operand<TypeParam> operand(random.integer(1, 200), random.integer(1, 300), layout, offset, seed);
      expect_slices_of_the_host(operand, successive_rule(wide, bits, slices, random.flip()), offset);
      if (this->HasFatalFailure()) return;
    }
  }
}

TYPED_TEST(OzakiStepsOf, EveryShapeHasTheHostsSlices) {
  Random random(fresh_seed());
  for (const std::int64_t size : {1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000, 9001}) {
    for (const Layout layout : layouts) {
      const std::uint64_t seed = random.bits();
      expect_slices_of_the_host(
          Operand<TypeParam>(std::min<std::int64_t>(size, 300), random.integer(1, 40), layout, 0, seed),
          successive_rule(false, 6, 11), 0);
      expect_slices_of_the_host(Operand<TypeParam>(random.integer(1, 20), size, layout, 0, seed),
                                successive_rule(true, 20, 4), 0);
      if (this->HasFatalFailure()) return;
    }
  }
}

// Each slice takes six bits, so four hold 24.
TEST(OzakiSteps, IncompleteVectorsAreMarkedInSmallCases) {
  using enum DeviceSuccessiveSplit::Complete;
  const double infinity = std::numeric_limits<double>::infinity();
  const struct {
    double x;
    double y;
    bool more_than_four;  // slices are needed
    bool deep;            // exponents of its slices are more than 100 apart
  } rows[] = {{.x = 1, .y = 2, .more_than_four = false, .deep = false},
              {.x = 1, .y = 0x1.5555555p0, .more_than_four = true, .deep = false},   // 29 bits
              {.x = 1, .y = 0x1.555554p0, .more_than_four = false, .deep = false},   // 24 bits
              {.x = 1, .y = 0x1.0000001p0, .more_than_four = false, .deep = false},  // a gap between its bits
              {.x = 1, .y = 0x1p-300, .more_than_four = false, .deep = true},
              {.x = 1, .y = infinity, .more_than_four = false, .deep = false},
              {.x = 0, .y = 0, .more_than_four = false, .deep = false}};
  for (const auto& row : rows) {
    Operand<double> operand(1, 2, Layout::along_k, 0, 1);
    operand.values = {row.x, row.y};
    const SplitRule rule = successive_rule(false, 5, 4);
    for (const auto complete : {unchecked, all_vectors}) {
      const DeviceSlices<double> device(operand, rule, 0);
      constexpr std::int32_t max_depth = 100;  // largest distance between the exponents of a vector's slices
      device.split(complete, complete == all_vectors ? max_depth : 0);
      const int slices_needed = device.lengths.host()[0];
      EXPECT_EQ(device.unreachable.host()[0],
                complete == all_vectors && (slices_needed > rule.slices || row.deep) ? 1 : 0)
          << row.x << ", " << row.y << ", complete " << static_cast<int>(complete);
      EXPECT_EQ(slices_needed > rule.slices, row.more_than_four) << row.x << ", " << row.y;
    }
    for (const SliceCounts slice_counts : {SliceCounts{3, 2}, SliceCounts{2, 3}, SliceCounts{0, 0}}) {
      const DeviceArray<SliceCounts> blocks(std::vector<SliceCounts>{{5, 0}, slice_counts});
      const DeviceSlices<double> device(operand, rule, 0);
      device.split(where_used, 0, {blocks.data(), 10, 1, 2, 1});
      EXPECT_EQ(device.unreachable.host()[0], row.more_than_four && slice_counts.exhausted == 3 ? 1 : 0)
          << row.x << ", " << row.y << ", slice_counts " << slice_counts.enough << ", "
          << slice_counts.exhausted;
    }
  }
}

// ------------------------------------------------------------------ Algorithm 3

// Slice counts of the rows of one block, found on the host. Both counts of a row are 0 where it needs more
// slices than there are.
template <class T>
std::vector<SliceCounts> host_slice_counts(const Operand<T>& a, const SplitRule& rule, const double* weights,
                                           int bits, bool& unreachable) {
  HostSlices<T> host(a.view(), rule);
  std::vector<Scaled> magnitudes(host.ranges.size());
  multiply_magnitudes(a.view(), host.ranges, weights, magnitudes.data(), 1);
  std::vector<SliceCounts> slice_counts(host.ranges.size());
  for (int count = 0; count <= rule.slices; ++count) {
    for (std::size_t v = 0; count > 0 && v < slice_counts.size(); ++v) {
      if (host.lengths[v] == 0 || slice_counts[v].enough != 0 || slice_counts[v].exhausted != 0) continue;
      if (count >= 2 && enough_slices(magnitudes[v], host.weighted[v], count, a.view().columns, bits)) {
        slice_counts[v].enough = count;
      } else if (host.tops[v] == no_residual) {
        slice_counts[v].exhausted = count;
      }
    }
    host.take(count, weights);
  }
  unreachable = false;
  for (std::size_t v = 0; v < slice_counts.size(); ++v)
    unreachable = unreachable ||
                  (host.lengths[v] != 0 && slice_counts[v].enough == 0 && slice_counts[v].exhausted == 0);
  return slice_counts;
}

// Slice counts of a block of C that has the rows first ... last - 1.
SliceCounts slice_counts_of_block(const std::vector<SliceCounts>& rows, std::int64_t first,
                                  std::int64_t last) {
  SliceCounts slice_counts;
  for (std::int64_t v = first; v < last; ++v) {
    const SliceCounts& row = rows[static_cast<std::size_t>(v)];
    slice_counts.enough = std::max(slice_counts.enough, row.enough);
    slice_counts.exhausted = std::max(slice_counts.exhausted, row.exhausted);
  }
  return slice_counts;
}

// Weights and slice counts that the device finds for all blocks of C.
struct FoundSliceCounts {
  std::vector<double> weights;
  std::vector<SliceCounts> slice_counts;
  int unreachable;
};

template <class T>
FoundSliceCounts slice_counts_on_device(const DeviceSlices<T>& a, const DeviceSlices<T>& b,
                                        DeviceBlockSliceCounts blocks, std::int64_t length, int bits) {
  const DeviceArray<SliceCounts> found(
      std::vector<SliceCounts>(static_cast<std::size_t>(blocks.blocks_m * blocks.blocks_n)));
  blocks.counts = found.data();
  const DeviceArray<double> weights(static_cast<std::size_t>(blocks.blocks_n * length));
  core::cuda::weigh_inner_indices({}, b.side(), blocks, weights.data(), {});
  core::cuda::find_slice_counts({},
                                {.a = a.side(),
                                 .first = 0,
                                 .slices = a.slices,
                                 .exponents = a.slice_exponents(),
                                 .weights = weights.data(),
                                 .bits = bits,
                                 .slice_counts = blocks,
                                 .unreachable = a.unreachable.data()},
                                {});
  return {weights.host(), found.host(), static_cast<int>(a.unreachable.host()[0])};
}

template <class T>
void expect_slice_counts_of_host(const Operand<T>& a, const Operand<T>& b, const SplitRule& rule, int bits,
                                 const DeviceBlockSliceCounts& blocks, std::int64_t edge_m,
                                 const FoundSliceCounts& found) {
  const std::int64_t length = a.matrix.length();
  std::vector<VectorRange> ranges(static_cast<std::size_t>(b.matrix.vectors()));
  find_ranges(b.view(), rule, ranges, 1);
  bool any_unreachable = false;
  for (std::int64_t j = 0; j < blocks.blocks_n; ++j) {
    const std::int64_t first = j * blocks.vectors;
    const std::int64_t count = std::min(blocks.vectors, b.matrix.vectors() - first);
    std::vector<double> weights(static_cast<std::size_t>(length));
    sum_vectors(b.view().vectors(first, count), std::span(ranges).subspan(first, count), weights.data(), 1);
    for (std::int64_t p = 0; p < length; ++p) {
      const double got = found.weights[static_cast<std::size_t>(j * length + p)];
      ASSERT_EQ(got, weights[static_cast<std::size_t>(p)]) << "inner index " << p << " of block " << j;
    }
    bool unreachable = false;
    const auto rows = host_slice_counts(a, rule, weights.data(), bits, unreachable);
    any_unreachable = any_unreachable || unreachable;
    for (std::int64_t i = 0; i < blocks.blocks_m; ++i) {
      const SliceCounts expected =
          slice_counts_of_block(rows, i * edge_m, std::min(a.matrix.vectors(), (i + 1) * edge_m));
      const SliceCounts& got = found.slice_counts[static_cast<std::size_t>(i + j * blocks.blocks_m)];
      EXPECT_EQ(got.enough, expected.enough) << "block " << i << ", " << j;
      EXPECT_EQ(got.exhausted, expected.exhausted) << "block " << i << ", " << j;
    }
  }
  EXPECT_EQ(found.unreachable, any_unreachable ? 1 : 0);
}

template <class T>
void compare_slice_counts(std::int64_t m, std::int64_t n, std::int64_t k, Layout layout, bool wide,
                          int slices, std::uint64_t seed) {
  Operand<T> a(m, k, layout, 0, seed);
  Operand<T> b(n, k, layout, 0, seed + 1);
  a.matrix.right = false;
  b.matrix.right = true;
  const int parts = is_complex<T> ? 2 : 1;
  SCOPED_TRACE(a.text() + " times " + b.text() + fmt::format(", {} slices, seed {}", slices, seed));
  const SplitRule rule = successive_rule(wide, wide ? 20 : 5, slices);
  const DeviceSlices<T> device_a(a, rule, 0);
  const DeviceSlices<T> device_b(b, rule, 0);
  device_a.split();
  const int bits = wide ? 53 : 24;
  const std::int64_t edge_m = divide_up(m, 3);
  const std::int64_t edge_n = divide_up(n, 2);
  const DeviceBlockSliceCounts blocks{nullptr, edge_m, parts * edge_n, divide_up(m, edge_m),
                                      divide_up(n, edge_n)};
  const FoundSliceCounts found = slice_counts_on_device(device_a, device_b, blocks, a.matrix.length(), bits);
  expect_slice_counts_of_host(a, b, rule, bits, blocks, edge_m, found);
}

TYPED_TEST(OzakiStepsOf, SliceCountsEqualTheHostsInSmallCases) {
  Random random(fresh_seed());
  for (const Layout layout : layouts) {
    for (int round = 0; round < 6; ++round) {
      const bool wide = random.flip();
      compare_slice_counts<TypeParam>(random.integer(1, 60), random.integer(2, 40), random.integer(1, 300),
                                      layout, wide, static_cast<int>(random.integer(2, wide ? 5 : 14)),
                                      random.bits());
      if (this->HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace kintsugi::test
