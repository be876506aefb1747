// Tests Algorithm 1 of dgemm-tc in integers: slices sum to the element, keep their bounds and the paper's
// property 1.
#include "split/successive.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "formats/formats.hpp"
#include "split/ranges.hpp"
#include "tools/measure/generators/generators.hpp"

namespace kintsugi::core {
namespace {

constexpr std::int64_t vector_count = 9;
constexpr std::int64_t vector_length = 20;
constexpr int max_slices = 240;

// An operand that is split until no residual is left.
template <class T>
class SplitOperand {
 public:
  SplitOperand(const std::string& distribution, const Format& format, SliceStorage storage, int bits,
               bool by_sigma = false)
      : values_(vector_count * vector_length), ranges_(vector_count), exponents_(max_slices * vector_count),
        residuals_(vector_count * vector_length), tops_(vector_count) {
    const MatrixView<T> view{values_.data(), vector_count, vector_length, 1, vector_count};
    measure::fill(measure::parse_distribution(distribution), measure::Side::a, 7, view);
    split_.by_sigma = by_sigma;
    split(format, storage, bits);
  }

  SplitOperand(const std::vector<T>& row, int bits)
      : values_(vector_count * vector_length), ranges_(vector_count), exponents_(max_slices * vector_count),
        residuals_(vector_count * vector_length), tops_(vector_count) {
    for (std::size_t p = 0; p < row.size(); ++p) values_[p * vector_count] = row[p];
    split(fp64, SliceStorage::packed, bits);
  }

  int count() const { return count_; }
  int exponent(int s, std::int64_t v) const { return split_.exponents(s, v); }
  double element(std::int64_t v, std::int64_t p) const { return values_[v + p * vector_count]; }
  double integer(int s, std::int64_t v, std::int64_t p) const {
    const Slices& slices = split_.slices;
    if (slices.format->id == FormatId::fp64) return slices.vector<double>(s, v)[p];
    if (slices.storage == SliceStorage::panels)
      return slices.vector<float>(s, v)[p * slices.element_stride()];
    return decode(*slices.format, slices.vector<std::uint16_t>(s, v)[p]);
  }
  const Slices& slices() const { return split_.slices; }
  double weighted_sum_of_vector_0(int s) {  // all weights are 3
    const std::vector<double> weights(vector_length, 3.0);
    std::vector<Scaled> sums(vector_count);
    set_first_residuals(operand(), ranges_, split_, 1);
    for (int t = 0; t <= s; ++t) take_slice(split_, t, weights.data(), sums.data(), 2);
    return std::ldexp(sums[0].fraction, static_cast<int>(sums[0].exponent));
  }

 private:
  MatrixView<const T> operand() const {
    return {values_.data(), vector_count, vector_length, 1, vector_count};
  }

  void split(const Format& format, SliceStorage storage, int bits) {
    split_.slices = make_slices(format, storage, max_slices, vector_count, vector_length);
    memory_.assign(split_.slices.bytes() / sizeof(double), -1.0);
    split_.slices.data = reinterpret_cast<std::byte*>(memory_.data());
    split_.exponents = {exponents_.data(), max_slices, vector_count, vector_count, 1};
    split_.residuals = residuals_.data();
    split_.tops = tops_.data();
    split_.bits = bits;
    const SplitRule rule{&format, max_slices, Rounding::nearest_even, Rounding::nearest_even, bits,
                         true,    0,          SplitKind::successive};
    find_ranges(operand(), rule, std::span(ranges_), 1);
    set_first_residuals(operand(), ranges_, split_, 2);
    while (any_residual(split_) && count_ < max_slices) take_slice(split_, count_++, nullptr, nullptr, 2);
    EXPECT_FALSE(any_residual(split_));
  }

  std::vector<T> values_;
  std::vector<VectorRange> ranges_;
  std::vector<std::int32_t> exponents_;
  std::vector<Residual> residuals_;
  std::vector<std::int32_t> tops_;
  std::vector<double> memory_;
  SuccessiveSplit split_;
  int count_ = 0;
};

template <class T>
void expect_properties(const SplitOperand<T>& split, int bits, const std::string& where) {
  for (std::int64_t v = 0; v < vector_count; ++v) {
    for (std::int64_t p = 0; p < vector_length; ++p) {
      ExactSum sum;
      double previous = HUGE_VAL;  // the last non-zero slice, in units of the element
      for (int s = 0; s < split.count(); ++s) {
        const double integer = split.integer(s, v, p);
        ASSERT_LE(std::fabs(integer), std::ldexp(1.0, bits)) << where;
        ASSERT_EQ(integer, std::nearbyint(integer)) << where;
        sum.add_integer(static_cast<std::uint64_t>(std::fabs(integer)), split.exponent(s, v), integer < 0);
        if (integer == 0) continue;
        // 2^-2000 keeps a slice of 2^1024 inside double; equality is of exact numbers, and small ones are not
        // compared.
        const double value = std::ldexp(std::fabs(integer), split.exponent(s, v) - 100);
        if (value != 0) {
          ASSERT_GE(previous, value) << where << ": property 1, slice " << s;
        }
        previous = value;
      }
      ASSERT_EQ(sum.to_double(), split.element(v, p)) << where << " " << v << ", " << p;
      sum.add(-split.element(v, p));
      ASSERT_TRUE(sum.is_zero()) << where;
    }
  }
}

TEST(SuccessiveSplit, SlicesSumToEveryElement) {
  for (const char* distribution :
       {"uniform", "phi:2", "subnormal", "subnormal-mixed", "graded:300", "span:600", "power-of-two:1023",
        "power-of-two:-1074", "offset:1023", "integer:5", "cancellation:40"}) {
    for (const int bits : {2, 11}) {
      expect_properties(SplitOperand<double>(distribution, fp16, SliceStorage::packed, bits), bits,
                        distribution);
      expect_properties(SplitOperand<double>(distribution, fp16, SliceStorage::panels, bits), bits,
                        distribution);
    }
    expect_properties(SplitOperand<double>(distribution, fp64, SliceStorage::packed, 21), 21, distribution);
  }
  for (const char* distribution : {"uniform", "phi:2", "subnormal", "offset:127"})
    expect_properties(SplitOperand<float>(distribution, fp16, SliceStorage::panels, 7), 7, distribution);
}

// grid=sigma rounds as Algorithm 1 does, by adding and subtracting sigma.
TEST(SuccessiveSplit, SlicesBySigmaSumToEveryElement) {
  for (const char* distribution :
       {"uniform", "phi:2", "subnormal", "subnormal-mixed", "graded:300", "span:600", "power-of-two:1023",
        "power-of-two:-1074", "offset:1023", "integer:5", "cancellation:40"}) {
    for (const int bits : {4, 11}) {
      expect_properties(SplitOperand<double>(distribution, fp16, SliceStorage::packed, bits, true), bits,
                        distribution);
    }
    expect_properties(SplitOperand<double>(distribution, fp64, SliceStorage::packed, 21, true), 21,
                      distribution);
  }
}

// Lines 5 to 12 of Algorithm 1 in FP64, for vector v: the slices with their scales.
std::vector<std::vector<double>> slices_by_the_paper(const SplitOperand<double>& split, std::int64_t v,
                                                     int bits) {
  std::vector<double> residual(vector_length);
  for (std::int64_t p = 0; p < vector_length; ++p) residual[p] = split.element(v, p);
  std::vector<std::vector<double>> slices;
  for (;;) {
    double largest = 0;
    for (const double x : residual) largest = std::max(largest, std::fabs(x));
    if (largest == 0) return slices;
    int tau = 0;
    if (std::frexp(largest, &tau) == 0.5) --tau;  // largest is a power of two
    const double sigma = std::ldexp(1.0, 53 - bits + tau);
    std::vector<double> slice(vector_length);
    for (std::int64_t p = 0; p < vector_length; ++p) {
      const volatile double shifted = residual[p] + sigma;
      slice[p] = shifted - sigma;
      residual[p] -= slice[p];
    }
    slices.push_back(slice);
  }
}

TEST(SuccessiveSplit, SlicesBySigmaEqualThoseOfThePaper) {
  for (const char* distribution :
       {"uniform", "uniform01", "phi:2", "offset:900", "integer:1000", "power-of-two:20"}) {
    for (const int bits : {4, 5, 11}) {
      const SplitOperand<double> split(distribution, fp16, SliceStorage::packed, bits, true);
      for (std::int64_t v = 0; v < vector_count; ++v) {
        const auto expected = slices_by_the_paper(split, v, bits);
        ASSERT_LE(expected.size(), static_cast<std::size_t>(split.count())) << distribution << " " << bits;
        for (std::size_t s = 0; s < expected.size(); ++s) {
          for (std::int64_t p = 0; p < vector_length; ++p) {
            const auto index = static_cast<int>(s);
            ASSERT_EQ(std::ldexp(split.integer(index, v, p), split.exponent(index, v)), expected[s][p])
                << distribution << " " << bits << ", slice " << s;
          }
        }
      }
    }
  }
}

TEST(SuccessiveSplit, PaddingIsZero) {
  const SplitOperand<double> split("uniform", fp64, SliceStorage::packed, 21);
  for (int s = 0; s < split.count(); ++s) {
    for (std::int64_t v = 0; v < 128; ++v) {
      for (std::int64_t p = v < vector_count ? vector_length : 0; p < split.slices().vector_stride(); ++p)
        ASSERT_EQ(split.integer(s, v, p), 0);
    }
  }
}

// The grid is recomputed from the residuals' maximum, so no slice is spent on bits that are zero everywhere.
TEST(SuccessiveSplit, EmptyBitsAreSkipped) {
  const SplitOperand<double> split(std::vector<double>{1, 0x1p-500, 0x1.8p-1000}, 4);
  EXPECT_EQ(split.count(), 3);
  EXPECT_EQ(split.exponent(0, 0), -4);
  EXPECT_EQ(split.exponent(1, 0), -504);
  EXPECT_EQ(split.exponent(2, 0), -1003);  // ceil(log2 1.5) = 1
  EXPECT_EQ(split.integer(2, 0, 2), 12);
}

TEST(SuccessiveSplit, TiesGoToEven) {
  // Grid 2^-1 with bits = 1 and maximum 1: 0.25 and 0.75 are ties.
  const SplitOperand<double> split(std::vector<double>{1, 0.25, -0.25, 0.75, -0.75}, 1);
  EXPECT_EQ(split.integer(0, 0, 1), 0);
  EXPECT_EQ(split.integer(0, 0, 2), 0);
  EXPECT_EQ(split.integer(0, 0, 3), 2);
  EXPECT_EQ(split.integer(0, 0, 4), -2);
}

TEST(SuccessiveSplit, WeightedSumIsOfTheSlicesMagnitudes) {
  SplitOperand<double> split(std::vector<double>{1, -0.75, 0x1p-40}, 3);
  EXPECT_EQ(split.weighted_sum_of_vector_0(0), 3 * 1.75);
  EXPECT_EQ(split.weighted_sum_of_vector_0(1), 3 * 0x1p-40);
}

}  // namespace
}  // namespace kintsugi::core
