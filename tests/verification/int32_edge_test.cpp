// Tests sums of the largest digits and residues that a split can produce, on both sides of what an int32
// accumulator holds (131,071 products of -128, 133,144 of 127) and of the 65,536 products after which sums
// are added outside it.
#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>

#include "arith/split_rule.hpp"
#include "engines/registry.hpp"
#include "planner/plan.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/gemm_case.hpp"
#include "tests/support/integer_schemes.hpp"
#include "tools/measure/reference/exact.hpp"

namespace kintsugi::test {
namespace {

// A row of 131,072 elements takes 16 MiB per slice, since vectors are padded to 128, so programs of many
// slices get shorter ones: k-blocks are 8,192 (ozaki-int8) or 65,536 (ozaki2) long.
constexpr int max_slices = 16;

std::vector<std::int64_t> lengths(const core::Program& program) {
  if (!thorough) return {65537};
  if (program.split_a.slices > 3) return {8192, 65537};
  return {65537, 131072, 133145};
}

template <class T>
core::OperandType type_of_operands() {
  return std::is_same_v<T, float> ? core::OperandType::f32 : core::OperandType::f64;
}

// One row of A and one column of B, constant along k except for their first elements.
template <class T>
class LongSum {
 public:
  LongSum(const Route& route, std::int64_t k) : data_(route.applied({.m = 1, .n = 1, .k = k})) {}

  void fill(T a_first, T a, T b_first, T b) {
    for (std::int64_t p = 0; p < data_.test().k; ++p) {
      data_.a()(0, p) = p == 0 ? a_first : a;
      data_.b()(p, 0) = p == 0 ? b_first : b;
    }
  }

  T run() {
    data_.run_well();
    return data_.c()(0, 0);
  }

  T exact() {
    const measure::Product<T> product{constant(data_.a()), constant(data_.b())};
    T value = 0;
    measure::exact_product<T>(product, {&value, 1, 1, 1, 1});
    return value;
  }

 private:
  GemmDataOf<T> data_;
};

template <class T>
class Int32Edge : public testing::Test {
 protected:
  // Calls visit(route) for every integer program with that recombination, on every engine.
  template <class Visit>
  static void for_each_program(core::Recombination recombination, Visit&& visit) {
    int visited = 0;
    for (const core::Engine* engine : core::all_engines()) {
      if (!engine->unavailable_reason().empty()) continue;
      for (const std::string& scheme : integer_schemes(*engine, type_of_operands<T>())) {
        const core::Program& program = core::find_scheme(scheme)->program;
        if (program.recombination != recombination || program.split_a.slices > max_slices) continue;
        visit(Route{.engine = std::string(engine->name()), .scheme = scheme});
        ++visited;
      }
    }
    if (recombination == core::Recombination::residues) {
      EXPECT_GT(visited, 0);
    }
  }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Int32Edge, Types);

// A first element of 2^top sets the scale to 1, so the other elements are integers whose residues are the
// largest there are: -128 modulo 256, and (m - 1) / 2 of either sign modulo other m.
TYPED_TEST(Int32Edge, SumsOfTheLargestResiduesAreExact) {
  using T = TypeParam;
  this->for_each_program(core::Recombination::residues, [](const Route& route) {
    for (const std::int64_t k : lengths(core::find_scheme(route.scheme)->program)) {
      const core::Program program =
          core::fitted_program(*core::find_scheme(route.scheme), type_of_operands<T>(), k);
      const T top = std::ldexp(T(1), program.split_a.top_exponent);
      for (const T value : {T(128), T(127)}) {
        LongSum<T> sum(route, k);
        sum.fill(top, value, top, 128);
        EXPECT_EQ(sum.run(), sum.exact()) << route.name() << " k " << k << " value " << value;
      }
    }
  });
}

__extension__ using Int128 = __int128;

// The digits of a number, and the sum of k of its squares as the schedule's terms compute it.
class WeightedDigits {
 public:
  WeightedDigits(const core::Program& program, double x) : program_(program) {
    core::VectorRange range;
    core::extend(range, x);
    core::set_scale(range, program.split_a);
    scale_ = range.scale;
    digits_.resize(static_cast<std::size_t>(program.split_a.slices));
    core::split_element(program.split_a, x, scale_, [&](int s, std::uint64_t pattern) {
      digits_[s] = static_cast<std::int8_t>(pattern);
    });
  }

  // The sum is exact, and rounded to double once as in the recombination.
  double sum(std::int64_t k) const {
    int min_exponent = 0;
    for (const core::Term& term : program_.schedule.terms)
      min_exponent = std::min(min_exponent, program_.schedule.group_exponents[term.group]);
    Int128 total = 0;
    for (const core::Term& term : program_.schedule.terms) {
      const int exponent = program_.schedule.group_exponents[term.group] - min_exponent;
      total += static_cast<Int128>(digits_[term.a] * digits_[term.b]) * k * (Int128{1} << exponent);
    }
    return std::ldexp(static_cast<double>(total), min_exponent - 2 * scale_);
  }

  int largest_digit() const {
    int largest = 0;
    for (const int digit : digits_) largest = std::max(largest, std::abs(digit));
    return largest;
  }

 private:
  const core::Program& program_;
  int scale_ = 0;
  std::vector<int> digits_;
};

// The numbers have the largest leading digit, and all other digits are -128 or 127.
TYPED_TEST(Int32Edge, SumsOfTheLargestDigitsAreExact) {
  using T = TypeParam;
  int largest = 0;
  this->for_each_program(core::Recombination::weighted, [&](const Route& route) {
    const core::Program program =
        core::fitted_program(*core::find_scheme(route.scheme), type_of_operands<T>(), 1);
    if (program.format().id != core::FormatId::int8) return;
    for (const double x : {126 + 127 * 0x1p-8 + 127 * 0x1p-16, 126 - 128 * 0x1p-8 - 128 * 0x1p-16, 126.5,
                           -126.496, 126 - 128 * 0x1.01010101p-8}) {
      const T value = static_cast<T>(x);
      if (core::scales_by_maxima(program.split_a)) {  // all digits are 127, and their weights real numbers
        for (const std::int64_t k : lengths(program)) {
          LongSum<T> sum(route, k);
          sum.fill(value, value, value, value);
          const double exact = static_cast<double>(k) * value * value;
          EXPECT_NEAR(sum.run(), exact, 0x1p-23 * exact) << route.name() << " k " << k << " value " << value;
        }
        continue;
      }
      const WeightedDigits digits(program, value);
      largest = std::max(largest, digits.largest_digit());
      for (const std::int64_t k : lengths(program)) {
        LongSum<T> sum(route, k);
        sum.fill(value, value, value, value);
        EXPECT_EQ(sum.run(), static_cast<T>(digits.sum(k)))
            << route.name() << " k " << k << " value " << value;
      }
    }
  });
  if (std::is_same_v<T, float>) {
    EXPECT_EQ(largest, 128);
  }
}

}  // namespace
}  // namespace kintsugi::test
