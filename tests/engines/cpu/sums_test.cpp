// Tests that sums in two doubles, by every family of kernels, give the bits of the superaccumulator.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "arith/exact/exact_rounding.hpp"
#include "engines/cpu/products.hpp"
#include "recombine/compensated_sums.hpp"
#include "recombine/recombine.hpp"
#include "schemes/superaccumulator.hpp"
#include "split/ranges.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::core {
namespace {

// The families that this CPU can execute.
std::vector<const SumKernels*> all_families() {
  std::vector<const SumKernels*> families{&sums_generic};
#if defined(__x86_64__)
  for (const PairKernels* pairs : pair_families()) {
    if (pairs == &pairs_avx512) families.push_back(&sums_avx512);
    if (pairs == &pairs_avx2) families.push_back(&sums_avx2);
  }
#endif
  return families;
}

enum class Data { moderate, wide, very_wide, zeros, ties, cancelling, tiny, huge, special };
constexpr int data_kinds = 9;

template <class T>
class RandomSums {
 public:
  using Real = RealOf<T>;

  RandomSums(std::uint64_t seed, std::int64_t rows, std::int64_t columns, std::int64_t length)
      : m(rows), n(columns), k(length), random_(seed) {
    data = static_cast<Data>(seed % data_kinds);
    by_rows_a_ = draw(2) == 0;
    by_rows_b_ = draw(2) == 0;
    by_rows_c_ = draw(2) == 0;
    conjugates_ = draw(2) == 0;
    fill(memory_a_, m * k);
    fill(memory_b_, n * k);
    fill(old, m * n);
    for (T& x : old) x = is_finite(x) ? x : T(3);
    if (data == Data::cancelling) cancel();
    alpha = std::vector<T>{T(1), T(1), T(-1), T(Real(2.7)),
                           T(Real(sizeof(Real) == 4 ? 0x1p-100 : 0x1p-300))}[draw(5)];
    beta = std::vector<T>{T(0), T(0), T(1), T(Real(-0.3)), T(Real(3))}[draw(5)];
    if constexpr (is_complex<T>) {
      if (draw(4) == 0) alpha = {Real(0.5), Real(-1)};
    }
    if (draw(3) == 0) {
      for (std::int64_t e = 0; e < m * n; ++e)
        states_.push_back(draw(5) == 0 ? ElementCheck::open : ElementCheck::closed);
    }
  }

  std::vector<T> run(const SumKernels* kernels, int threads = 1) const {
    const OperandView<T> a = view(memory_a_, m, by_rows_a_, false);
    const OperandView<T> b = view(memory_b_, n, by_rows_b_, true);
    std::vector<VectorRange> rows(static_cast<std::size_t>(a.rows)),
        columns(static_cast<std::size_t>(b.rows));
    const SplitRule& rule = schemes::superaccumulator.program.split_a;
    find_ranges(a, rule, std::span(rows), 1);
    find_ranges(b, rule, std::span(columns), 1);
    std::vector<T> c = old;
    if (beta == T(0)) std::ranges::fill(c, T(std::numeric_limits<Real>::quiet_NaN()));
    const std::size_t bytes = exact_scratch_bytes<T>(m, b.rows, a.columns, threads);
    std::vector<std::byte> memory(bytes + workspace_alignment);
    void* scratch = memory.data();
    std::size_t space = memory.size();
    multiply_exactly(a, b, rows, columns, alpha, beta, view_of_c(c),
                     states_.empty() ? nullptr : states_.data(), kernels, RoundingMode::nearest,
                     static_cast<std::byte*>(std::align(workspace_alignment, bytes, scratch, space)),
                     threads);
    return c;
  }

  std::int64_t m, n, k;
  Data data;
  T alpha, beta;
  std::vector<T> old;

 private:
  std::uint64_t draw(std::uint64_t count) { return random_() % count; }

  MatrixView<T> view_of_c(std::vector<T>& c) const {
    return {c.data(), m, n, by_rows_c_ ? n : 1, by_rows_c_ ? 1 : m};
  }
  OperandView<T> view(const std::vector<T>& memory, std::int64_t vectors, bool by_rows, bool is_b) const {
    const MatrixView<const T> matrix{memory.data(), vectors, k, by_rows ? k : 1, by_rows ? 1 : vectors};
    if constexpr (is_complex<T>) {
      return {matrix, is_b, conjugates_};
    } else {
      return matrix;
    }
  }

  Real number() {
    std::normal_distribution<double> normal;
    constexpr bool is_float = sizeof(Real) == sizeof(float);
    double value = normal(random_);
    switch (data) {
      case Data::moderate: break;
      case Data::wide: value *= std::exp(2 * normal(random_)); break;
      case Data::very_wide: value *= std::exp((is_float ? 4 : 40) * normal(random_)); break;
      case Data::zeros: value = draw(3) == 0 ? value : 0; break;
      case Data::ties: value = static_cast<double>(draw(1 << 22)) - (1 << 21); break;
      case Data::cancelling: value *= std::exp((is_float ? 4 : 10) * normal(random_)); break;
      case Data::tiny: value *= is_float ? 1e-21 : 1e-158; break;
      case Data::huge: value *= is_float ? 1e18 : 1e153; break;
      case Data::special: break;
    }
    if (data == Data::special && draw(200) == 0) value = draw(2) == 0 ? NAN : -INFINITY;
    return static_cast<Real>(value);
  }
  void fill(std::vector<T>& memory, std::int64_t elements) {
    memory.resize(static_cast<std::size_t>(elements));
    for (T& x : memory) {
      if constexpr (is_complex<T>) {
        x = {number(), number()};
      } else {
        x = number();
      }
    }
  }
  static bool is_finite(const T& x) { return x - x == T(0); }

  // The second half of the products cancels the first half, but for an element.
  void cancel() {
    const auto at = [&](std::vector<T>& memory, std::int64_t vectors, bool by_rows, std::int64_t v,
                        std::int64_t p) -> T& {
      return memory[static_cast<std::size_t>(by_rows ? v * k + p : v + p * vectors)];
    };
    for (std::int64_t p = 0; p < k / 2; ++p) {
      for (std::int64_t i = 0; i < m; ++i)
        at(memory_a_, m, by_rows_a_, i, p + k / 2) = at(memory_a_, m, by_rows_a_, i, p);
      for (std::int64_t j = 0; j < n; ++j)
        at(memory_b_, n, by_rows_b_, j, p + k / 2) = -at(memory_b_, n, by_rows_b_, j, p);
    }
    if (k > 0) at(memory_a_, m, by_rows_a_, 0, k - 1) *= Real(1e-6);
  }

  std::mt19937_64 random_;
  std::vector<T> memory_a_, memory_b_;
  std::vector<std::uint8_t> states_;
  bool by_rows_a_, by_rows_b_, by_rows_c_, conjugates_;
};

template <class T>
bool have_same_bits(const std::vector<T>& x, const std::vector<T>& y) {
  using Real = RealOf<T>;
  using Bits = std::conditional_t<sizeof(Real) == sizeof(float), std::uint32_t, std::uint64_t>;
  const auto* p = reinterpret_cast<const Real*>(x.data());
  const auto* q = reinterpret_cast<const Real*>(y.data());
  for (std::size_t e = 0; e < x.size() * static_cast<std::size_t>(parts_of<T>); ++e) {
    const bool same =
        std::isnan(p[e]) ? std::isnan(q[e]) : std::bit_cast<Bits>(p[e]) == std::bit_cast<Bits>(q[e]);
    if (!same) return false;
  }
  return true;
}

struct SumShape {
  std::int64_t m, n, k;
};

SumShape shape_of(std::uint64_t seed) {
  std::mt19937_64 random(seed + 77);
  const auto between = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  switch (seed / data_kinds % 6) {
    case 0: return {between(1, 70), between(1, 70), between(1, 70)};
    case 1: return {between(1, 4), between(1, 4), between(1000, 20000)};
    case 2: return {between(100, 1000), between(1, 4), between(1, 4)};
    case 3: return {between(1, 4), between(60, 150), between(1, 100)};
    case 4: return {between(60, 140), between(60, 140), 1};
    default: return {between(1, 20), between(1, 20), between(100, 600)};
  }
}

template <class T>
void expect_bits_of_superaccumulator() {
  const std::uint64_t cases = test::thorough ? 540 : 108;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const SumShape shape = shape_of(seed);
    const RandomSums<T> sums(seed, shape.m, shape.n, shape.k);
    const std::vector<T> expected = sums.run(nullptr);
    for (const SumKernels* kernels : all_families())
      ASSERT_TRUE(have_same_bits(expected, sums.run(kernels, seed % 3 == 0 ? 2 : 1)))
          << kernels->name << ", case " << seed << ": " << shape.m << " x " << shape.n << " x " << shape.k;
  }
}

TEST(Sums, OfFp64HaveTheBitsOfTheSuperaccumulator) { expect_bits_of_superaccumulator<double>(); }
TEST(Sums, OfFp32HaveTheBitsOfTheSuperaccumulator) { expect_bits_of_superaccumulator<float>(); }
TEST(Sums, OfComplexFp64HaveTheBitsOfTheSuperaccumulator) {
  expect_bits_of_superaccumulator<std::complex<double>>();
}
TEST(Sums, OfComplexFp32HaveTheBitsOfTheSuperaccumulator) {
  expect_bits_of_superaccumulator<std::complex<float>>();
}

// Kernels that forget the errors: their sums are those of a native product.
void add_panels_without_errors(const double* a, const double* b, std::int64_t length, std::int64_t columns,
                               const CompensatedSums& sums) {
  sums_generic.add_panels(a, b, length, columns, sums);
  for (std::int64_t j = 0; j < columns; ++j) {
    std::fill_n(sums.errors + j * sums.stride, sum_panel_rows, 0.0);
    std::fill_n(sums.magnitudes + j * sums.stride, sum_panel_rows, 0.0);
  }
}
void add_vectors_without_errors(const double* a, const double* b, std::int64_t length,
                                const CompensatedSums& sums) {
  sums_generic.add_vectors(a, b, length, sums);
  std::fill_n(sums.errors, sum_panel_rows, 0.0);
  std::fill_n(sums.magnitudes, sum_panel_rows, 0.0);
}

TEST(Sums, WithoutErrorsAreWrong) {
  const SumKernels wrong{"wrong", add_panels_without_errors, add_vectors_without_errors};
  for (const SumShape shape : {SumShape{30, 20, 10}, SumShape{2, 2, 3000}}) {
    bool differs = false;
    for (std::uint64_t seed = 0; seed < 10 * data_kinds; seed += data_kinds) {
      const RandomSums<double> sums(seed, shape.m, shape.n, shape.k);
      differs = differs || !have_same_bits(sums.run(nullptr), sums.run(&wrong));
    }
    EXPECT_TRUE(differs) << shape.k;
  }
}

// ---------------------------------------------------------------- rounding

// Every value that round_sums() calls certain is the rounded exact one, wherever the exact sum lies within
// the deviation.
template <class T>
void expect_certain_values() {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  const auto draw = [&](std::uint64_t count) { return random() % count; };
  std::int64_t certain_values = 0;
  const int cases = test::thorough ? 2'000'000 : 200'000;
  for (int number = 0; number < cases; ++number) {
    const SumScalars scalars{.alpha = std::vector<double>{1, -1, 1.5, 0.1}[draw(4)],
                             .beta = std::vector<double>{0, 1, -0.7}[draw(3)],
                             .products = static_cast<std::int64_t>(draw(1000) + 1)};
    // Most sums are close to a number, or to the middle of two, where rounding to T changes.
    const int exponent = static_cast<int>(draw(40)) - 20;
    double sum =
        std::ldexp(std::round(std::ldexp(1 + std::fabs(normal(random)), sizeof(T) == 4 ? 24 : 52)), exponent);
    double errors = std::ldexp(normal(random), exponent - static_cast<int>(draw(80)));
    double magnitudes =
        draw(4) == 0 ? 0 : std::ldexp(std::fabs(normal(random)), exponent - static_cast<int>(draw(60)));
    if (draw(3) == 0) errors = std::ldexp(0.5, exponent) * (draw(2) == 0 ? 1 : -1);
    if (draw(10) == 0) sum = errors = magnitudes = 0;
    const T c =
        static_cast<T>(draw(5) == 0 ? 0 : std::ldexp(normal(random), static_cast<int>(draw(40)) + 20));
    T value;
    std::uint64_t certain;
    round_sums({&sum, &errors, &magnitudes, 1}, 1, scalars, scalars.beta == 0 ? nullptr : &c, &value,
               &certain);
    if (certain == 0) continue;
    ++certain_values;
    const double deviation = 2 * static_cast<double>(scalars.products) * 0x1p-53 * magnitudes;
    for (const double moved : {-deviation, 0.0, deviation}) {
      ExactSum exact;
      exact.add(sum);
      exact.add(errors);
      exact.add(moved);
      exact.multiply(scalars.alpha);
      if (scalars.beta != 0) exact.add_product(scalars.beta, static_cast<double>(c));
      const T expected =
          sizeof(T) == 4 ? static_cast<T>(exact.to_float()) : static_cast<T>(exact.to_double());
      ASSERT_EQ(value, expected) << "case " << number;
      ASSERT_FALSE(value == 0 && std::signbit(value));
    }
  }
  EXPECT_GT(certain_values, cases / 4);
}

TEST(RoundSums, CertainDoublesAreCorrectlyRounded) { expect_certain_values<double>(); }
TEST(RoundSums, CertainFloatsAreCorrectlyRounded) { expect_certain_values<float>(); }

TEST(RoundSums, LeaveSpecialAndExtremeNumbersOpen) {
  const double infinity = std::numeric_limits<double>::infinity();
  double none = 0;
  double value;
  std::uint64_t certain;
  for (double sum : {infinity, -infinity, static_cast<double>(NAN), 0x1p1021, 0x1p-1001}) {
    round_sums({&sum, &none, &none, 1}, 1, {1, 0, 1}, static_cast<const double*>(nullptr), &value, &certain);
    EXPECT_EQ(certain, 0U) << sum;
  }
  double one = 1;
  round_sums({&one, &none, &none, 1}, 1, {1, 1, 1}, &infinity, &value, &certain);
  EXPECT_EQ(certain, 0U);
  round_sums({&one, &none, &none, 1}, 1, {1, 1, 1}, &one, &value, &certain);
  EXPECT_NE(certain, 0U);
  EXPECT_EQ(value, 2);
  for (const double scalar : {infinity, 0x1p-300, 0x1p300, static_cast<double>(NAN)}) {
    EXPECT_FALSE((SumScalars{scalar, 0, 1}.may_be_certain())) << scalar;
    EXPECT_FALSE((SumScalars{1, scalar, 1}.may_be_certain())) << scalar;
  }
}

// Nearly all sums of random numbers are certain: else the superaccumulator would compute them.
TEST(RoundSums, DecideNearlyAllRandomSums) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  constexpr std::int64_t length = 1000;
  std::vector<double> a(length), b(length);
  int open = 0;
  for (int number = 0; number < 1000; ++number) {
    for (auto* vector : {&a, &b}) {
      for (double& x : *vector) x = normal(random) * std::exp(normal(random));
    }
    std::vector<double> lanes(3 * sum_panel_rows);
    sums_generic.add_vectors(
        a.data(), b.data(), length,
        {lanes.data(), lanes.data() + sum_panel_rows, lanes.data() + 2 * sum_panel_rows, sum_panel_rows});
    double values[sum_panel_rows];
    std::uint64_t certain[sum_panel_rows];
    round_sums(
        {lanes.data(), lanes.data() + sum_panel_rows, lanes.data() + 2 * sum_panel_rows, sum_panel_rows},
        sum_panel_rows, {1, 0, length}, static_cast<const double*>(nullptr), values, certain);
    open += static_cast<int>(std::count(certain, certain + sum_panel_rows, 0U));
  }
  EXPECT_LE(open, 2);
}

}  // namespace
}  // namespace kintsugi::core
