// Tests 52-bit words: they sum to the nearest point of the grid, ties to even, and fit the format.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "arith/exact/exact_sum.hpp"
#include "formats/formats.hpp"
#include "schemes/program.hpp"
#include "split/ranges.hpp"
#include "split/split.hpp"
#include "tools/measure/generators/generators.hpp"

namespace kintsugi::core {
namespace {

template <class T>
class Words : public testing::Test {
 protected:
  // Splits a dense operand, whose vectors are strided or contiguous, into words.
  void split(std::vector<T>& elements, std::int64_t vectors, bool strided, int words) {
    k_ = std::ssize(elements) / vectors;
    view_ = {elements.data(), vectors, k_, strided ? 1 : k_, strided ? vectors : 1};
    const SplitRule rule = grid_split(int52, words);
    ranges_.assign(static_cast<std::size_t>(vectors), VectorRange{});
    find_ranges(view_, rule, ranges_, 2);
    slices_ = make_slices(int52, SliceStorage::packed, words, vectors, k_);
    memory_.assign(slices_.bytes(), std::byte{0xee});
    slices_.data = memory_.data();
    split_operand(view_, rule, ranges_, slices_, 2);
  }

  // Checks the error of the words in units of the grid's last place: it is at most a half, and exactly a half
  // only if the last word is even.
  void expect_nearest(std::int64_t v, std::int64_t p) const {
    ExactSum residual;
    const int last = ranges_[v].scale + 52 * (slices_.count - 1);
    for (int s = 0; s < slices_.count; ++s) {
      const std::int64_t word = slices_.vector<std::int64_t>(s, v)[p];
      ASSERT_GE(word, -(std::int64_t{1} << 51));
      ASSERT_LT(word, std::int64_t{1} << 51);
      residual.add_product(static_cast<double>(word), std::ldexp(1.0, 52 * (slices_.count - 1 - s)));
    }
    // 2^last in two factors, each a normal double
    const double element = static_cast<double>(view_(v, p));
    if (std::abs(element) * std::ldexp(1.0, last / 2) < 0x1p-600) {
      ASSERT_EQ(residual.to_double(), 0);
      return;
    }
    residual.add_product(-element * std::ldexp(1.0, last / 2), std::ldexp(1.0, last - last / 2));
    const double distance = std::abs(residual.to_double());
    ASSERT_LE(distance, 0.5) << element;
    if (distance == 0.5) {
      ASSERT_EQ(slices_.vector<std::int64_t>(slices_.count - 1, v)[p] % 2, 0) << element;
    }
  }

  void expect_nearest_everywhere() const {
    for (std::int64_t v = 0; v < view_.rows; ++v) {
      for (std::int64_t p = 0; p < k_; ++p) expect_nearest(v, p);
    }
  }

  std::int64_t k_ = 0;
  MatrixView<const T> view_;
  std::vector<VectorRange> ranges_;
  Slices slices_;
  std::vector<std::byte> memory_;
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Words, Types);

TYPED_TEST(Words, SumToTheNearestGridPoint) {
  for (const char* distribution : {"uniform", "phi:4", "span:60", "span:200", "subnormal-mixed", "offset:100",
                                   "offset:-120", "integer:20"}) {
    for (const bool strided : {false, true}) {
      for (int words = 1; words <= 4; ++words) {
        std::vector<TypeParam> elements(19 * 77);
        const MatrixView<TypeParam> rows{elements.data(), 19, 77, 77, 1};
        measure::fill(measure::parse_distribution(distribution), measure::Side::a, 5, rows);
        SCOPED_TRACE(testing::Message() << distribution << " " << words);
        this->split(elements, 19, strided, words);
        this->expect_nearest_everywhere();
      }
    }
  }
}

// The largest element decides where the others' ties are: 2^50 makes the grid's last place 1.
TYPED_TEST(Words, RoundTiesToEven) {
  using T = TypeParam;
  const T largest = std::is_same_v<T, float> ? 0x1p50F : static_cast<T>(0x1p50);
  std::vector<T> elements{largest, T(0.5), T(-0.5), T(1.5), T(-1.5), T(2.5), T(-2.5), T(0.75), T(1e-30)};
  this->split(elements, 1, false, 1);
  this->expect_nearest_everywhere();
  const std::int64_t* word = this->slices_.template vector<std::int64_t>(0, 0);
  EXPECT_EQ(std::vector(word, word + 9),
            (std::vector<std::int64_t>{std::int64_t{1} << 50, 0, 0, 2, -2, 2, -2, 1, 0}));
}

// Largest elements at the limits of the type, elements that would round to 2^51, and special values, which
// become zero words.
TYPED_TEST(Words, AreRightAtTheLimitsOfTheType) {
  using limits = std::numeric_limits<TypeParam>;
  for (const TypeParam largest : {limits::max(), limits::denorm_min(), limits::min(),
                                  TypeParam(2) - limits::epsilon(), TypeParam(1.984375), TypeParam(1.98)}) {
    for (int words = 1; words <= 4; ++words) {
      std::vector<TypeParam> elements{largest,
                                      -largest,
                                      largest / 3,
                                      -largest / 1000,
                                      limits::denorm_min(),
                                      limits::infinity(),
                                      limits::quiet_NaN(),
                                      -limits::infinity(),
                                      0};
      SCOPED_TRACE(testing::Message() << largest << " " << words);
      this->split(elements, 1, false, words);
      for (int s = 0; s < words; ++s) {
        for (const std::int64_t p : {5, 6, 7, 8}) {
          EXPECT_EQ(this->slices_.template vector<std::int64_t>(s, 0)[p], 0);
        }
      }
      for (std::int64_t p = 0; p < 5; ++p) this->expect_nearest(0, p);
    }
  }
}

}  // namespace
}  // namespace kintsugi::core
