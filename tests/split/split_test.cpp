// Compares slices with their definition, and ranges with a plain loop over the operand.
#include "split/split.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "formats/formats.hpp"
#include "schemes/program.hpp"
#include "split/ranges.hpp"
#include "tools/measure/generators/generators.hpp"

namespace kintsugi::core {
namespace {

struct Operand {
  Operand(std::int64_t vectors, std::int64_t k, bool strided, const std::string& distribution,
          std::uint64_t seed)
      : memory(static_cast<std::size_t>(vectors * k)) {
    view = {memory.data(), vectors, k, strided ? 1 : k, strided ? vectors : 1};
    measure::fill(measure::parse_distribution(distribution), measure::Side::a, seed, view);
  }
  MatrixView<const float> read() const {
    return {memory.data(), view.rows, view.columns, view.row_stride, view.column_stride};
  }
  std::vector<float> memory;
  MatrixView<float> view;
};

std::vector<std::byte> split(const MatrixView<const float>& operand, const SplitRule& rule,
                             SliceStorage storage, std::vector<VectorRange>& ranges, Slices& slices,
                             int threads) {
  ranges.assign(static_cast<std::size_t>(operand.rows), VectorRange{});
  find_ranges(operand, rule, ranges, threads);
  slices = make_slices(rule, storage, operand.rows, operand.columns);
  std::vector<std::byte> memory(slices.bytes(), std::byte{0xee});
  slices.place(memory.data());
  split_operand(operand, rule, ranges, slices, threads);
  return memory;
}

double slice_value(const Slices& slices, int s, std::int64_t v, std::int64_t p) {
  if (slices.storage == SliceStorage::panels) return slices.vector<float>(s, v)[p * slices.element_stride()];
  switch (slices.format->storage_bytes) {
    case 1: return decode(*slices.format, slices.vector<std::uint8_t>(s, v)[p]);
    case 2: return decode(*slices.format, slices.vector<std::uint16_t>(s, v)[p]);
    case 4: return decode(*slices.format, slices.vector<std::uint32_t>(s, v)[p]);
    default: return decode(*slices.format, slices.vector<std::uint64_t>(s, v)[p]);
  }
}

TEST(Ranges, MatchAPlainLoop) {
  for (const char* distribution : {"uniform", "phi:4", "subnormal-mixed", "special:0.2", "graded:60"}) {
    const Operand operand(37, 101, true, distribution, 5);
    std::vector<VectorRange> ranges(37);
    const SplitRule& rule = find_scheme("fp16x3")->program.split_a;
    find_ranges(operand.read(), rule, ranges, 2);
    for (std::int64_t v = 0; v < 37; ++v) {
      int largest = -10000;
      int smallest = 10000;
      bool nan = false, plus = false, minus = false;
      for (std::int64_t p = 0; p < 101; ++p) {
        const float x = operand.view(v, p);
        nan |= std::isnan(x);
        plus |= std::isinf(x) && x > 0;
        minus |= std::isinf(x) && x < 0;
        if (!std::isfinite(x) || x == 0) continue;
        largest = std::max(largest, std::ilogb(x));
        smallest = std::min(smallest, std::ilogb(x));
      }
      const VectorRange& range = ranges[v];
      EXPECT_EQ((range.flags & VectorRange::has_nan) != 0, nan);
      EXPECT_EQ((range.flags & VectorRange::has_plus_infinity) != 0, plus);
      EXPECT_EQ((range.flags & VectorRange::has_minus_infinity) != 0, minus);
      EXPECT_EQ(range.largest, largest) << distribution;
      EXPECT_EQ(range.smallest, smallest);
      EXPECT_EQ(range.scale, 14 - largest);
    }
  }
}

template <class T>
void expect_ranges_of_every_element(const MatrixView<const T>& operand, const std::string& distribution) {
  const SplitRule& rule = find_scheme("int8x6")->program.split_a;
  std::vector<VectorRange> ranges(static_cast<std::size_t>(operand.rows));
  find_ranges(operand, rule, ranges, 2);
  for (std::int64_t v = 0; v < operand.rows; ++v) {
    VectorRange expected;
    for (std::int64_t p = 0; p < operand.columns; ++p) extend(expected, operand(v, p));
    set_scale(expected, rule);
    const VectorRange& range = ranges[static_cast<std::size_t>(v)];
    ASSERT_EQ(range.flags, expected.flags) << distribution << ", vector " << v;
    ASSERT_EQ(range.largest, expected.largest) << distribution << ", vector " << v;
    ASSERT_EQ(range.smallest, expected.smallest) << distribution << ", vector " << v;
    ASSERT_EQ(range.raised, expected.raised) << distribution << ", vector " << v;
    ASSERT_EQ(range.scale, expected.scale) << distribution << ", vector " << v;
  }
}

template <class T>
void expect_ranges_in_any_layout(const std::string& distribution) {
  for (const auto& [vectors, k] : {std::pair{1, 1}, {16, 100}, {37, 101}, {5, 3}}) {
    for (const auto& [row, column] : {std::pair{1, vectors}, {k, 1}, {1, vectors + 3}, {2, 2 * vectors}}) {
      std::vector<T> memory(static_cast<std::size_t>((vectors + 3) * 2 * k + k));
      const MatrixView<T> view{memory.data(), vectors, k, row, column};
      measure::fill(measure::parse_distribution(distribution), measure::Side::a, 9, view);
      expect_ranges_of_every_element(MatrixView<const T>{memory.data(), vectors, k, row, column},
                                     distribution);
    }
  }
}

TEST(Ranges, CoverEveryElementInAnyLayout) {
  for (const char* distribution : {"uniform", "phi:4", "subnormal-mixed", "special:0.2", "integer:127"}) {
    expect_ranges_in_any_layout<float>(distribution);
    expect_ranges_in_any_layout<double>(distribution);
  }
}

TEST(Ranges, ZeroVectorsScaleByOne) {
  const std::vector<float> zeros(8, 0.0F);
  std::vector<VectorRange> ranges(2);
  find_ranges(MatrixView<const float>{zeros.data(), 2, 4, 4, 1}, find_scheme("fp16x3")->program.split_a,
              ranges, 1);
  EXPECT_EQ(ranges[0].flags, VectorRange::all_zero);
  EXPECT_EQ(ranges[0].scale, 0);
  EXPECT_EQ(ranges[0].dynamic_range(), 0);
  EXPECT_TRUE(summarize(ranges).finite);
}

class Split : public testing::TestWithParam<const Scheme*> {};

TEST_P(Split, SlicesFollowTheDefinition) {
  const SplitRule& rule = GetParam()->program.split_a;
  if (rule.kind != SplitKind::rounded_residuals) GTEST_SKIP() << "digits and residues are tested below";
  for (const char* distribution : {"uniform", "phi:2", "subnormal", "offset:100", "offset:-120"}) {
    for (const bool strided : {false, true}) {
      const Operand operand(19, 70, strided, distribution, 11);
      std::vector<VectorRange> ranges;
      Slices slices;
      const auto memory = split(operand.read(), rule, SliceStorage::packed, ranges, slices, 2);
      for (std::int64_t v = 0; v < 19; ++v) {
        for (std::int64_t p = 0; p < 70; ++p) {
          double residual = std::ldexp(static_cast<double>(operand.view(v, p)), ranges[v].scale);
          for (int s = 0; s < rule.slices; ++s) {
            const Rounding rounding = s == 0 ? rule.first_rounding : rule.residual_rounding;
            const double expected = decode(*rule.format, encode(*rule.format, residual, rounding));
            ASSERT_EQ(slice_value(slices, s, v, p), expected) << distribution;
            residual = std::ldexp(residual - expected, rule.residual_exponent);
          }
        }
      }
    }
  }
}

TEST_P(Split, PaddingIsZero) {
  const SplitRule& rule = GetParam()->program.split_a;
  const Operand operand(19, 70, false, "uniform", 3);
  std::vector<VectorRange> ranges;
  Slices packed;
  const auto memory = split(operand.read(), rule, SliceStorage::packed, ranges, packed, 1);
  EXPECT_EQ(packed.padded_vectors(), 128);
  EXPECT_EQ(packed.vector_stride(), 128);
  for (int s = 0; s < rule.slices; ++s) {
    for (std::int64_t v = 0; v < 128; ++v) {
      for (std::int64_t p = v < 19 ? 70 : 0; p < 128; ++p) ASSERT_EQ(slice_value(packed, s, v, p), 0);
    }
  }
}

// Panels are split many elements at a time, or one by one where a slice could overflow.
TEST_P(Split, PanelsHaveTheBitsOfPackedSlices) {
  const SplitRule& rule = GetParam()->program.split_a;
  if (rule.kind == SplitKind::tiles) GTEST_SKIP() << "no panels";
  for (const char* distribution : {"uniform", "phi:4", "subnormal-mixed", "special:0.2", "graded:60"}) {
    for (const auto& [vectors, k] : {std::pair{1, 1}, {16, 64}, {19, 130}, {35, 70}}) {
      for (const bool strided : {false, true}) {
        const Operand operand(vectors, k, strided, distribution, 3);
        std::vector<VectorRange> ranges;
        Slices packed, panels;
        const auto packed_memory = split(operand.read(), rule, SliceStorage::packed, ranges, packed, 1);
        const auto panel_memory = split(operand.read(), rule, SliceStorage::panels, ranges, panels, 3);
        for (int s = 0; s < rule.slices; ++s) {
          for (std::int64_t v = 0; v < round_up(vectors, 16); ++v) {
            for (std::int64_t p = 0; p < k; ++p) {
              const auto expected = static_cast<float>(slice_value(packed, s, v, p));
              const auto computed = static_cast<float>(slice_value(panels, s, v, p));
              ASSERT_EQ(std::bit_cast<std::uint32_t>(expected), std::bit_cast<std::uint32_t>(computed))
                  << distribution << ", slice " << s << " of (" << v << ", " << p << "): " << computed
                  << " instead of " << expected;
            }
          }
        }
      }
    }
  }
}

template <class View>
std::vector<float> values_of(const View& operand, const SplitRule& rule, SliceStorage storage) {
  std::vector<VectorRange> ranges(static_cast<std::size_t>(operand.rows));
  find_ranges(operand, rule, std::span(ranges), 1);
  Slices slices = make_slices(*rule.format, storage, rule.slices, operand.rows, operand.columns);
  std::vector<std::byte> memory(slices.bytes(), std::byte{0xee});
  slices.data = memory.data();
  split_operand(operand, rule, ranges, slices, 1);
  std::vector<float> values;
  for (int s = 0; s < rule.slices; ++s) {
    for (std::int64_t v = 0; v < operand.rows; ++v) {
      for (std::int64_t p = 0; p < operand.columns; ++p)
        values.push_back(static_cast<float>(slice_value(slices, s, v, p)));
    }
  }
  return values;
}

template <class T>
void expect_same_in_panels(const SplitRule& rule, const std::string& distribution) {
  constexpr std::int64_t vectors = 21, k = 70;
  constexpr std::int64_t parts = parts_of<T>;
  std::vector<T> memory(static_cast<std::size_t>(vectors * k));
  const MatrixView<RealOf<T>> reals{reinterpret_cast<RealOf<T>*>(memory.data()), parts * vectors, k, 1,
                                    parts * vectors};
  measure::fill(measure::parse_distribution(distribution), measure::Side::a, 6, reals);
  const MatrixView<const T> elements{memory.data(), vectors, k, 1, vectors};
  OperandView<T> operand;
  if constexpr (is_complex<T>) {
    operand = OperandView<T>(elements, true, true);
  } else {
    operand = elements;
  }
  const std::vector<float> packed = values_of(operand, rule, SliceStorage::packed);
  const std::vector<float> panels = values_of(operand, rule, SliceStorage::panels);
  ASSERT_EQ(packed.size(), panels.size());
  for (std::size_t e = 0; e < packed.size(); ++e)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(packed[e]), std::bit_cast<std::uint32_t>(panels[e]))
        << distribution << ", value " << e << ": " << panels[e] << " instead of " << packed[e];
}

TEST_P(Split, PanelsOfAnyTypeHaveTheBitsOfPackedSlices) {
  const SplitRule& rule = GetParam()->program.split_a;
  if (rule.kind != SplitKind::rounded_residuals || !rule.format->floating) GTEST_SKIP() << "no panels";
  for (const char* distribution : {"uniform", "phi:4", "subnormal-mixed", "special:0.2", "span:120"}) {
    expect_same_in_panels<double>(rule, distribution);
    expect_same_in_panels<std::complex<float>>(rule, distribution);
    expect_same_in_panels<std::complex<double>>(rule, distribution);
  }
}

TEST_P(Split, BlocksAreViewsOfAllSlices) {
  const SplitRule& rule = GetParam()->program.split_a;
  const Operand operand(300, 5, false, "uniform", 3);
  std::vector<VectorRange> ranges;
  Slices slices;
  const auto memory = split(operand.read(), rule, SliceStorage::packed, ranges, slices, 1);
  const Slices block = slices.block(128, 172);
  for (int s = 0; s < rule.slices; ++s)
    EXPECT_EQ(slice_value(block, s, 7, 3), slice_value(slices, s, 135, 3));
}

TEST_P(Split, SpecialValuesLeaveZeros) {
  const SplitRule& rule = GetParam()->program.split_a;
  const std::vector<float> row{1, std::numeric_limits<float>::quiet_NaN(),
                               std::numeric_limits<float>::infinity(), 2};
  std::vector<VectorRange> ranges;
  Slices slices;
  const auto memory = split({row.data(), 1, 4, 4, 1}, rule, SliceStorage::packed, ranges, slices, 1);
  for (int s = 0; s < rule.slices; ++s) {
    EXPECT_EQ(slice_value(slices, s, 0, 1), 0);
    EXPECT_EQ(slice_value(slices, s, 0, 2), 0);
  }
  EXPECT_FALSE(ranges[0].finite());
}

// Rules whose elements are split one by one, before the products.
std::vector<const Scheme*> split_by_element() {
  std::vector<const Scheme*> schemes;
  for (const Scheme* scheme : all_schemes()) {
    const SplitKind kind = scheme->program.split_a.kind;
    if (kind != SplitKind::successive && kind != SplitKind::direct_residuals) schemes.push_back(scheme);
  }
  return schemes;
}

INSTANTIATE_TEST_SUITE_P(AllSchemes, Split, testing::ValuesIn(split_by_element()), [](const auto& scheme) {
  std::string name(scheme.param->name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// Digits of a grid add up to the nearest grid point, and int8 holds all of them.
TEST(Digits, SumToTheNearestGridPoint) {
  constexpr double grid = 0x1p16;
  for (const char* distribution :
       {"uniform", "phi:2", "subnormal", "offset:127", "offset:-120", "integer:127"}) {
    const Operand operand(23, 70, true, distribution, 5);
    const SplitRule rule = grid_split(int8, 3);
    std::vector<VectorRange> ranges;
    Slices slices;
    const auto memory = split(operand.read(), rule, SliceStorage::packed, ranges, slices, 2);
    for (std::int64_t v = 0; v < 23; ++v) {
      double largest = 0;
      for (std::int64_t p = 0; p < 70; ++p) {
        const double x = std::ldexp(static_cast<double>(operand.view(v, p)), ranges[v].scale);
        largest = std::max(largest, std::abs(x));
        double sum = 0;
        for (int s = 0; s < 3; ++s) sum += std::ldexp(slice_value(slices, s, v, p), 8 * (2 - s));
        ASSERT_EQ(sum, std::nearbyint(x * grid)) << distribution;
      }
      ASSERT_LT(largest, 127);
      ASSERT_GE(largest, 63.5);
    }
  }
}

TEST(Digits, RoundTiesToEvenAndKeepTheirSigns) {
  const auto digits = [](double x) {
    std::vector<int> values;
    split_element(grid_split(int8, 2), x, 0,
                  [&](int, std::uint64_t pattern) { values.push_back(static_cast<std::int8_t>(pattern)); });
    std::reverse(values.begin(), values.end());
    return values;
  };
  EXPECT_EQ(digits(1.0), (std::vector{1, 0}));
  EXPECT_EQ(digits(0.5), (std::vector{1, -128}));
  EXPECT_EQ(digits(-0.5), (std::vector{0, -128}));
  EXPECT_EQ(digits(127.0 / 256), (std::vector{0, 127}));
  EXPECT_EQ(digits(0.5 / 256), (std::vector{0, 0}));
  EXPECT_EQ(digits(1.5 / 256), (std::vector{0, 2}));
  EXPECT_EQ(digits(-126.99), (std::vector{-127, 3}));
}

// A magnitude that would round to 128 raises the exponent, in float and double, subnormals too.
TEST(Digits, LeadingOnesRaiseTheExponent) {
  for (const double unit : {1.0, 0x1p-100, 0x1p100, 0x1p-139}) {
    for (const double largest : {1.984374, 1.984375, 1.9921875, 1.9999999}) {
      const auto value = static_cast<float>(largest * unit);
      VectorRange range{}, range_of_double{};
      extend(range, value);
      extend(range_of_double, static_cast<double>(value));
      EXPECT_EQ(range.raised, range_of_double.raised);
      const int exponent = exponent_of(value);
      EXPECT_EQ(range.largest, exponent);
      EXPECT_EQ(range.raised - exponent, std::ldexp(value, -exponent) >= 1.984375F ? 1 : 0) << value;
    }
  }
  VectorRange range{};
  extend(range, 5e-324 * 255);  // 255 units of the smallest double: 1.9921875 2^7
  EXPECT_EQ(range.largest, -1067);
  EXPECT_EQ(range.raised, -1066);
}

}  // namespace
}  // namespace kintsugi::core
