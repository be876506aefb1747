// Tests NaN, infinities, zeros of both signs, subnormals and the largest numbers at random positions in A, B,
// C, alpha and beta, for every scheme, contract and policy on every engine: each element's class is one that
// special_oracle.hpp accepts, and finite elements keep their bound, or are correctly rounded.
#include <gtest/gtest.h>

#include <limits>
#include <type_traits>

#include "engines/registry.hpp"
#include "schemes/bound.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/gemm_case.hpp"
#include "tests/support/routes.hpp"
#include "tests/support/scheme_bound.hpp"
#include "tests/verification/special_oracle.hpp"
#include "tools/measure/generators/random.hpp"
#include "tools/measure/reference/exact.hpp"

namespace kintsugi::test {
namespace {

using measure::Random;

template <class T>
T draw(Random& random, double special_rate) {
  using limits = std::numeric_limits<T>;
  if (random.unit() >= special_rate) return static_cast<T>(random.symmetric());
  const T values[] = {
      limits::quiet_NaN(),  limits::infinity(), -limits::infinity(), T(0),           -T(0),
      limits::denorm_min(), -limits::min() / 4, limits::max(),       -limits::max(), limits::min()};
  return values[random.integer(0, std::ssize(values) - 1)];
}

template <class T>
double draw_scalar(Random& random) {
  using limits = std::numeric_limits<T>;
  const T values[] = {1,
                      1,
                      1,
                      1,
                      -1,
                      0,
                      0.75,
                      -T(0),
                      limits::quiet_NaN(),
                      limits::infinity(),
                      -limits::infinity(),
                      limits::denorm_min(),
                      -limits::max() / 8,
                      3};
  return static_cast<double>(values[random.integer(0, std::ssize(values) - 1)]);
}

// A random problem, and the check of every element of its result.
template <class T>
class Placement {
 public:
  Placement(const Route& route, Random& random) : route_(route), data_(make_case(route, random)) {
    const double rates[] = {0, 0.01, 0.05, 0.3};
    const double rate = rates[random.integer(0, 3)];
    fill(data_.a(), random, rate);
    fill(data_.b(), random, rate);
    if (data_.beta() != 0) fill(data_.c(), random, rate);
    before_ = data_.raw_c();
  }

  std::int64_t special_elements() const { return special_elements_; }

  void run_and_judge() {
    const kintsugi_status status = data_.run();
    if (status == KINTSUGI_CONTRACT_UNREACHABLE && can_refuse()) {
      EXPECT_EQ(bits_of(data_.raw_c()), bits_of(before_)) << "a call that failed wrote to C";
      return;
    }
    ASSERT_EQ(status, KINTSUGI_SUCCESS) << kintsugi_last_error();
    const Bound bound(route_, data_);
    for (std::int64_t j = 0; j < data_.test().n; ++j) {
      for (std::int64_t i = 0; i < data_.test().m; ++i) {
        judge(i, j, bound);
        if (testing::Test::HasFailure()) return;
      }
    }
  }

 private:
  // Largest allowed error of elements with finite factors.
  class Bound {
   public:
    Bound(const Route& route, GemmDataOf<T>& data)
        : a_(finite_copy(data.a())), b_(finite_copy(data.b().transposed())),
          native_(route.scheme.empty() && route.accuracy != "exact"), k_(data.test().k) {
      const MatrixView<const T> a{a_.data(), data.test().m, k_, k_, 1};
      const MatrixView<const T> b{b_.data(), k_, data.test().n, 1, k_};
      if (route.scheme.empty() || k_ == 0) return;
      scheme_.emplace(*core::find_scheme(route.scheme), *core::find_engine(route.engine), a, b);
      overflows_ = scheme_->overflows() || sums_overflow(route, a, b);
    }

    bool overflows() const { return overflows_; }
    bool native() const { return native_; }

    double operator()(const measure::ElementError& element, double alpha) const {
      constexpr double unit = std::is_same_v<T, float> ? 0x1p-24 : 0x1p-53;
      constexpr double smallest = std::numeric_limits<T>::denorm_min();
      const double products = static_cast<double>(k_ + 2) * (1 + std::abs(alpha)) * smallest;
      if (!native_) {
        const bool rounds_before = std::is_same_v<T, double>;  // alpha times a subnormal sum
        return (*scheme_)(element, alpha) + (rounds_before ? products : 0);
      }
      return (static_cast<double>(k_) + 8 + 3) * unit * element.absolute + products;
    }

   private:
    // Copies the operand as it is split: NaN and infinities become zeros.
    static std::vector<T> finite_copy(const MatrixView<T>& rows) {
      std::vector<T> copy(static_cast<std::size_t>(rows.rows * rows.columns));
      for (std::int64_t v = 0; v < rows.rows; ++v) {
        for (std::int64_t p = 0; p < rows.columns; ++p)
          copy[v * rows.columns + p] = std::isfinite(rows(v, p)) ? rows(v, p) : T(0);
      }
      return copy;
    }

    bool sums_overflow(const Route& route, MatrixView<const T> a, MatrixView<const T> b) const {
      constexpr auto type = std::is_same_v<T, float> ? core::OperandType::f32 : core::OperandType::f64;
      const core::Program program = core::fitted_program(*core::find_scheme(route.scheme), type, k_);
      std::vector<core::VectorRange> rows(static_cast<std::size_t>(a.rows)),
          columns(static_cast<std::size_t>(b.columns));
      core::find_ranges(a, program.split_a, rows, 1);
      core::find_ranges(b.transposed(), program.split_b, columns, 1);
      return !program.split_a.scale_vectors &&
             core::sums_can_overflow(program, core::summarize(rows), core::summarize(columns), k_);
    }

    std::vector<T> a_, b_;
    bool native_;
    std::int64_t k_;
    std::optional<Allowance<T>> scheme_;
    bool overflows_ = false;
  };

  static GemmCase make_case(const Route& route, Random& random) {
    GemmCase test =
        route.applied({.m = random.integer(1, 7), .n = random.integer(1, 7), .k = random.integer(0, 9)});
    test.alpha = draw_scalar<T>(random);
    test.beta = random.flip() ? 0 : draw_scalar<T>(random);
    test.op_a = static_cast<kintsugi_op>(random.integer(0, 2));
    test.op_b = static_cast<kintsugi_op>(random.integer(0, 2));
    test.layout = static_cast<kintsugi_layout>(random.integer(0, 1));
    test.pad_c = random.integer(0, 2);
    test.threads = 1;  // operands of a few elements, and slices taken one after the other
    return test;
  }

  void fill(const MatrixView<T>& matrix, Random& random, double rate) {
    for (std::int64_t i = 0; i < matrix.rows; ++i) {
      for (std::int64_t j = 0; j < matrix.columns; ++j) {
        matrix(i, j) = draw<T>(random, rate);
        special_elements_ += !std::isfinite(matrix(i, j)) || matrix(i, j) == 0 || std::abs(matrix(i, j)) > 1;
      }
    }
  }

  T old(std::int64_t i, std::int64_t j) {
    MatrixView<T> view = data_.c();
    view.data = before_.data() + (view.data - data_.raw_c().data());
    return view(i, j);
  }

  // A named scheme that adapts to the operands may refuse their magnitudes.
  bool can_refuse() const {
    return !route_.scheme.empty() && core::find_scheme(route_.scheme)->adapt != nullptr;
  }

  bool is_exact() const { return route_.accuracy == "exact" || route_.scheme == "superaccumulator"; }

  void judge(std::int64_t i, std::int64_t j, const Bound& bound) {
    SCOPED_TRACE(route_.name() + " alpha " + std::to_string(data_.alpha()) + " beta " +
                 std::to_string(data_.beta()) + " old " + std::to_string(old(i, j)) + " element " +
                 std::to_string(i) + ", " + std::to_string(j));
    const T computed = data_.c()(i, j);
    const double alpha = data_.alpha(), beta = data_.beta();
    if (data_.test().k == 0 || alpha == 0) {
      const T expected = beta == 0 ? T(0) : beta == 1 ? old(i, j) : data_.beta() * old(i, j);
      EXPECT_TRUE(computed == expected || (std::isnan(computed) && std::isnan(expected)));
      return;
    }
    const Classes product = class_of_product(data_.a(), data_.b(), i, j, bound.native());
    if (product == finite && std::isfinite(alpha) &&
        (beta == 0 || (std::isfinite(beta) && std::isfinite(old(i, j)))))
      return judge_finite(i, j, computed, bound);
    const FiniteSum sum = product == finite ? finite_sum(i, j, bound) : FiniteSum{};
    Classes accepted = scaled_class(product, sum, alpha);
    if (beta != 0) {
      const bool overflows = std::abs(beta * static_cast<double>(old(i, j))) > std::numeric_limits<T>::max();
      accepted = add(accepted, old_class(beta, old(i, j), overflows));
    }
    EXPECT_NE(class_of(computed) & accepted, 0U) << computed << " is not of " << accepted;
  }

  // Properties of (A B)_ij, with finite factors.
  FiniteSum finite_sum(std::int64_t i, std::int64_t j, const Bound& bound) {
    const measure::Product<T> product{constant(data_.a()), constant(data_.b())};
    const measure::ExactElement element = measure::exact_element(product, i, j);
    const auto [row, column] = gather(i, j);
    const measure::ElementReference<T> reference(row.data(), column.data(), data_.test().k, 1, 0, 0);
    FiniteSum sum{.sign = reference.sum().sign()};
    if (is_exact()) return sum;
    measure::ElementError judged;
    judged.i = i, judged.j = j, judged.exact = element.value, judged.absolute = element.absolute;
    const double allowed = bound.overflows() ? std::numeric_limits<double>::infinity() : bound(judged, 1);
    sum.decided = std::abs(element.value) > allowed || (sum.sign == 0 && element.absolute == 0);
    sum.overflows = bound.overflows() ||
                    !fits((element.absolute + allowed) * std::max(1.0, std::abs(data_.alpha() * 1.0)));
    return sum;
  }

  static bool fits(double magnitude) {
    return magnitude < static_cast<double>(std::numeric_limits<T>::max()) * (1 - 0x1p-20);
  }

  std::pair<std::vector<T>, std::vector<T>> gather(std::int64_t i, std::int64_t j) {
    std::pair<std::vector<T>, std::vector<T>> row_and_column;
    for (std::int64_t p = 0; p < data_.test().k; ++p) {
      row_and_column.first.push_back(data_.a()(i, p));
      row_and_column.second.push_back(data_.b()(p, j));
    }
    return row_and_column;
  }

  void judge_finite(std::int64_t i, std::int64_t j, T computed, const Bound& bound) {
    const auto [row, column] = gather(i, j);
    const measure::ElementReference<T> reference(row.data(), column.data(), data_.test().k, data_.alpha(),
                                                 data_.beta(), data_.beta() == 0 ? 0 : old(i, j));
    if (is_exact()) {
      EXPECT_EQ(computed, reference.rounded());
      return;
    }
    if (bound.overflows()) return;
    measure::ElementError element;
    element.i = i;
    element.j = j;
    element.exact = reference.element().value;
    element.absolute = reference.element().absolute;
    const double alpha = data_.alpha();
    const double allowed = bound(element, alpha);
    // Both terms contain alpha, which is multiplied last: the sum before it may be larger by 1 / |alpha|.
    const double largest_intermediate = (element.absolute + allowed) / std::min(1.0, std::abs(alpha));
    if (!fits(largest_intermediate)) return;  // an intermediate may overflow, so any class is right
    ASSERT_TRUE(std::isfinite(computed)) << computed << " for " << element.exact;
    EXPECT_LE(std::abs(reference.error_of(computed).to_double()), allowed)
        << computed << " for " << element.exact;
  }

  const Route& route_;
  GemmDataOf<T> data_;
  std::vector<T> before_;
  std::int64_t special_elements_ = 0;
};

template <class T>
class SpecialPlacement : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(SpecialPlacement, Types);

TYPED_TEST(SpecialPlacement, GiveElementsOfTheClassesThatTheOracleAccepts) {
  constexpr bool is_double = std::is_same_v<TypeParam, double>;
  const std::vector<Route> routes = all_routes(is_double ? core::OperandType::f64 : core::OperandType::f32);
  const std::int64_t wanted = thorough ? 100000 : 3000;
  std::int64_t special_elements = 0;
  Random random(is_double ? 88 : 87);
  for (std::int64_t trial = 0; special_elements < wanted || trial < std::ssize(routes) * 20; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    Placement<TypeParam> placement(routes[trial % std::ssize(routes)], random);
    placement.run_and_judge();
    special_elements += placement.special_elements();
    ASSERT_FALSE(this->HasFailure());
  }
}

TEST(SpecialOracle, HasTheClassesOfKnownCases) {
  EXPECT_EQ(add(plus_infinity, minus_infinity), a_nan);
  EXPECT_EQ(add(plus_infinity, finite), plus_infinity);
  EXPECT_EQ(times(plus_infinity, -2), minus_infinity);
  EXPECT_EQ(scaled_class(finite, {.sign = -1}, std::numeric_limits<double>::infinity()), minus_infinity);
  EXPECT_EQ(scaled_class(finite, {.sign = 0}, std::numeric_limits<double>::infinity()), a_nan);
  const float a[] = {std::numeric_limits<float>::infinity(), 1}, b[] = {0, 1};
  EXPECT_EQ(class_of_product<const float>({a, 1, 2, 1, 1}, {b, 2, 1, 1, 2}, 0, 0, false), a_nan);
}

}  // namespace
}  // namespace kintsugi::test
