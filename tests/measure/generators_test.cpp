// Tests seeds, shapes and texts of all distributions.
#include "tools/measure/generators/generators.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "generated_matrix.hpp"

namespace kintsugi::measure {
namespace {

template <class T>
std::vector<std::uint8_t> bytes(const std::vector<T>& values) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(values.data());
  return {first, first + values.size() * sizeof(T)};
}

const char* const all_forms[] = {"uniform",
                                 "uniform01",
                                 "normal",
                                 "phi:2",
                                 "type1",
                                 "type2",
                                 "type3",
                                 "type4",
                                 "offset:-10",
                                 "graded:40",
                                 "graded-inner:40",
                                 "diagonal:60",
                                 "span:17",
                                 "cancellation:20",
                                 "subnormal",
                                 "integer:8",
                                 "subnormal-mixed",
                                 "outlier:40",
                                 "tile-outlier:0.1",
                                 "zeros:0.5",
                                 "special:0.1",
                                 "offset-nonnegative:-10",
                                 "power-of-two:-3",
                                 "powers-of-two:6",
                                 "language-model",
                                 "gram-diagonal:60",
                                 "crossed:30",
                                 "graded:-40",
                                 "normal"};

TYPED_TEST(Generators, ValuesDependOnSeedAndSideButNotOnStrides) {
  for (const char* form : all_forms) {
    SCOPED_TRACE(form);
    const Matrix<TypeParam> first(form, Side::a, 1, 13, 29);
    const Matrix<TypeParam> again(form, Side::a, 1, 13, 29);
    EXPECT_EQ(bytes(first.values), bytes(again.values));
    std::vector<TypeParam> by_columns(13 * 29);
    fill<TypeParam>(parse_distribution(form), Side::a, 1, {by_columns.data(), 13, 29, 1, 13});
    for (std::int64_t i = 0; i < 13; ++i) {
      for (std::int64_t l = 0; l < 29; ++l) {
        const TypeParam x = first(i, l);
        const TypeParam y = by_columns[i + 13 * l];
        ASSERT_TRUE(x == y || (std::isnan(x) && std::isnan(y)));
      }
    }
    if (std::string(form) == "power-of-two:-3") continue;
    const Matrix<TypeParam> other_seed(form, Side::a, 2, 13, 29);
    EXPECT_NE(bytes(first.values), bytes(other_seed.values));
    const Matrix<TypeParam> second_operand(form, Side::b, 1, 29, 13);
    std::vector<TypeParam> transposed;
    for (std::int64_t i = 0; i < 13; ++i) {
      for (std::int64_t l = 0; l < 29; ++l) transposed.push_back(second_operand(l, i));
    }
    EXPECT_NE(bytes(first.values), bytes(transposed));
  }
}

TYPED_TEST(Generators, ValuesDoNotDependOnThreads) {
  const int threads = omp_get_max_threads();
  for (const char* form : {"uniform", "span:17", "cancellation:20"}) {
    omp_set_num_threads(1);
    const Matrix<TypeParam> one_thread(form, Side::b, 1, 300, 200);
    omp_set_num_threads(3);
    const Matrix<TypeParam> three_threads(form, Side::b, 1, 300, 200);
    omp_set_num_threads(threads);
    EXPECT_EQ(bytes(one_thread.values), bytes(three_threads.values)) << form;
  }
}

TYPED_TEST(Generators, FillEmptyAndTinyMatrices) {
  for (const char* form : all_forms) {
    for (const std::int64_t length : {0, 1, 2, 3}) {
      const Matrix<TypeParam> a(form, Side::a, 1, 3, length);
      const Matrix<TypeParam> b(form, Side::b, 1, length, 3);
      const Matrix<TypeParam> none(form, Side::b, 1, length, 0);
      EXPECT_EQ(std::ssize(a.values), 3 * length);
    }
  }
}

TEST(Distributions, TextsAreReadBack) {
  for (const char* form : all_forms) {
    EXPECT_EQ(to_text(parse_distribution(form)), form);
    EXPECT_EQ(parse_distribution(to_text(parse_distribution(form))), parse_distribution(form));
  }
  EXPECT_EQ(distribution_forms().size(), 24U);
}

TEST(Distributions, ErrorsNameTheAcceptedTexts) {
  for (const char* text :
       {"", "gauss", "phi", "phi:", "phi:x", "phi:-1", "phi:nan", "phi:2 ", "type0", "type5", "type",
        "offset:1.5", "span:-1", "special:2", "uniform:3", "integer:0.5", "cancellation:inf"}) {
    try {
      parse_distribution(text);
      ADD_FAILURE() << "accepted '" << text << "'";
    } catch (const core::Error& error) {
      EXPECT_EQ(error.status(), core::Status::bad_setting);
      const std::string message = error.what();
      for (const char* part : {"uniform01", "phi:P", "type1...4", "offset-nonnegative:E", "special:RATE"}) {
        EXPECT_NE(message.find(part), std::string::npos) << message;
      }
      EXPECT_NE(message.find(std::string("'") + text + "'"), std::string::npos) << message;
    }
  }
}

TEST(Distributions, FloatRefusesWhatItCannotHold) {
  float single[4] = {};
  double wide[4] = {};
  for (const char* text : {"span:254", "offset:128", "offset:-150", "integer:16777217", "power-of-two:128",
                           "powers-of-two:128", "diagonal:255"}) {
    EXPECT_THROW(fill<float>(parse_distribution(text), Side::a, 1, {single, 2, 2, 2, 1}), core::Error)
        << text;
    EXPECT_NO_THROW(fill<double>(parse_distribution(text), Side::a, 1, {wide, 2, 2, 2, 1})) << text;
  }
}

}  // namespace
}  // namespace kintsugi::measure
