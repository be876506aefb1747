// Tests that the a-priori bound of every accumulator is never exceeded by its bit-exact model, and that some
// runs reach an eighth of it.
#include "schedule/accumulator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "engines/reference/models.hpp"
#include "tools/measure/reference/exact.hpp"

namespace kintsugi::core {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t sum_lengths[] = {1,  2,  3,  4,  5,  7,   8,   9,    15,  16,
                                        17, 31, 32, 33, 64, 100, 255, 1000, 4096};

// Operands of one run, as values that the format holds.
struct Operands {
  std::vector<double> a;
  std::vector<double> b;
  float sum = 0;
};

struct Outcome {
  double error;      // |computed - exact|
  double magnitude;  // |sum_0| + sum |a b|
  double bound;      // accumulation_error * magnitude + accumulation_floor
};

// `bound_of`: the accumulator whose bound is tested; `outside`: the run starts at zero and is added to sum_0
// in fp32, as cuBLAS does.
template <class Model>
Outcome measure(Accumulator bound_of, const Format& format, const Operands& run, bool outside = false) {
  std::vector<typename Model::Element> a;
  std::vector<typename Model::Element> b;
  measure::ExactSum exact;
  measure::ExactSum magnitude;
  exact.add(run.sum);
  magnitude.add(std::fabs(run.sum));
  double largest = 0;
  for (std::size_t p = 0; p < run.a.size(); ++p) {
    a.push_back(Model::load(format, encode(format, run.a[p])));
    b.push_back(Model::load(format, encode(format, run.b[p])));
    exact.add_product(run.a[p], run.b[p]);
    magnitude.add_product(std::fabs(run.a[p]), std::fabs(run.b[p]));
    largest = std::max({largest, std::fabs(run.a[p]), std::fabs(run.b[p])});
  }
  const auto n = static_cast<std::int64_t>(a.size());
  using Sum = typename Model::Sum;
  const Sum begin = outside ? Sum{0} : static_cast<Sum>(run.sum);
  Sum computed = Model::run(a.data(), b.data(), n, begin);
  if (outside) computed = static_cast<Sum>(run.sum) + computed;
  exact.add(-static_cast<double>(computed));
  const double total = magnitude.to_double();
  const double bound = accumulation_error(bound_of, format.id, n) * total +
                       accumulation_floor(bound_of, format.id, n, largest);
  return {std::fabs(exact.to_double()), total, bound};
}

enum class Kind { normal, one_sign, wide, dominant_first, dominant_sum, cancelling, powers, near_subnormal };
constexpr Kind kinds[] = {Kind::normal,       Kind::one_sign,   Kind::wide,   Kind::dominant_first,
                          Kind::dominant_sum, Kind::cancelling, Kind::powers, Kind::near_subnormal};

class Generator {
 public:
  explicit Generator(const Format& format) : format_(format), random_(17) {}

  Operands draw(Kind kind, std::int64_t n) {
    Operands run;
    for (std::int64_t p = 0; p < n; ++p) {
      run.a.push_back(rounded_to_format(operand(kind)));
      run.b.push_back(rounded_to_format(operand(kind)));
    }
    run.sum = static_cast<float>(operand(kind));
    if (kind == Kind::dominant_first) run.a[0] = run.b[0] = rounded_to_format(64);
    if (kind == Kind::dominant_first) run.sum = 0;
    if (kind == Kind::dominant_sum) run.sum = static_cast<float>(1 + uniform() * 4096);
    if (kind == Kind::cancelling) cancel(run);
    return run;
  }

 private:
  double uniform() { return std::uniform_real_distribution<double>()(random_); }
  double rounded_to_format(double value) const { return decode(format_, encode(format_, value)); }
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  double scaled(double sign, int low, int high) {
    return std::ldexp(sign * (1 + uniform()), between(std::max(low, format_.min_exponent), high));
  }

  double operand(Kind kind) {
    const double sign = between(0, 1) != 0 ? 1 : -1;
    // Products stay far from overflow in every format: 2^(2 * 6) in fp16 and fp8, 2^(2 * 30) otherwise.
    const int top = format_.max_exponent > 15 ? 30 : 6;
    switch (kind) {
      case Kind::one_sign: return 0.5 + uniform();
      case Kind::wide: return scaled(sign, -30, top);
      case Kind::dominant_first:
      case Kind::dominant_sum: return scaled(1, -12, -3);
      case Kind::powers: return std::ldexp(sign, between(std::max(-14, format_.min_exponent), 0));
      case Kind::near_subnormal: return near_subnormal(sign);
      default: return sign * uniform();
    }
  }

  // fp16 and fp8: operands that are subnormal or close to it; other formats: operands that are subnormal in
  // fp32, or whose products are.
  double near_subnormal(double sign) {
    const double significand = sign * (1 + uniform());
    if (format_.max_exponent <= 15) return std::ldexp(significand, format_.min_exponent + between(-9, 3));
    return std::ldexp(significand, between(0, 7) == 0 ? between(-132, -124) : between(-76, -60));
  }

  void cancel(Operands& run) {
    for (std::size_t p = 1; p < run.a.size(); p += 2) {
      run.a[p] = -run.a[p - 1];
      run.b[p] = between(0, 3) == 0 ? rounded_to_format(run.b[p - 1] * (1 + 0x1p-7)) : run.b[p - 1];
    }
  }

  const Format& format_;
  std::mt19937_64 random_;
};

// Every addend is just too small to change the sum that it is added to.
Operands adversary(Accumulator accumulator, const Format& format, std::int64_t n) {
  const int cut = is_tensor_core(accumulator) ? -23 - accumulator_extra_bits(accumulator) : -24;
  const double significand = is_tensor_core(accumulator) ? 2 - std::ldexp(1.0, -format.fraction_bits()) : 2;
  const auto count = static_cast<std::size_t>(n);
  return {std::vector<double>(count, std::ldexp(significand, cut / 2 - 1)),
          std::vector<double>(count, std::ldexp(1.0, cut - cut / 2)), 1};
}

// Calls visitor with every model of the format.
template <FormatId Id, class Visitor>
void for_each_model(Visitor&& visitor) {
  for (const Accumulator accumulator : accumulators) {
    SCOPED_TRACE(accumulator_name(accumulator));
    visit_model<Id>(accumulator, [&]<class Model>() { visitor.template operator()<Model>(accumulator); });
  }
}

template <FormatId Id>
void expect_bound_holds() {
  const Format& format = format_of<Id>;
  SCOPED_TRACE(format.name);
  for_each_model<Id>([&]<class Model>(Accumulator accumulator) {
    Generator generator(format);
    for (const Kind kind : kinds) {
      for (const std::int64_t n : sum_lengths) {
        for (int repeat = 0; repeat < (n < 64 ? 20 : 2); ++repeat) {
          const Outcome outcome = measure<Model>(accumulator, format, generator.draw(kind, n));
          ASSERT_LE(outcome.error, outcome.bound) << "kind " << static_cast<int>(kind) << ", n = " << n;
        }
      }
    }
  });
}

TEST(AccumulationError, HoldsForEveryModel) {
  expect_bound_holds<FormatId::fp16>();
  expect_bound_holds<FormatId::bf16>();
  expect_bound_holds<FormatId::tf32>();
  expect_bound_holds<FormatId::fp8_e4m3>();
  expect_bound_holds<FormatId::fp8_e5m2>();
  expect_bound_holds<FormatId::fp32>();
}

template <FormatId Id>
void expect_bound_is_nearly_reached() {
  const Format& format = format_of<Id>;
  SCOPED_TRACE(format.name);
  for_each_model<Id>([&]<class Model>(Accumulator accumulator) {
    // Their products hardly ever meet the accumulator alone.
    if (accumulator == Accumulator::amx_bf16 || accumulator == Accumulator::cdna2) return;
    for (const std::int64_t n : sum_lengths) {
      const Outcome outcome = measure<Model>(accumulator, format, adversary(accumulator, format, n));
      ASSERT_LE(outcome.error, outcome.bound) << "n = " << n;
      ASSERT_GE(outcome.error, outcome.bound / 8) << "n = " << n;
    }
  });
}

TEST(AccumulationError, IsWithinAFactorOfEightOfTheWorstRun) {
  expect_bound_is_nearly_reached<FormatId::fp16>();
  expect_bound_is_nearly_reached<FormatId::bf16>();
  expect_bound_is_nearly_reached<FormatId::tf32>();
  expect_bound_is_nearly_reached<FormatId::fp32>();
}

// The floor is needed: a subnormal factor sets a grid far above the sum's own.
TEST(AccumulationFloor, CoversSubnormalFactors) {
  Operands run{std::vector<double>(16, 0x1p-20), std::vector<double>(16, 0x1p-20), 0};
  run.a[0] = 0x1p-24;
  run.b[0] = 1;
  const Outcome outcome = measure<ModelOf<FormatId::fp16, Accumulator::h200>>(Accumulator::h200, fp16, run);
  EXPECT_GT(outcome.error, accumulation_error(Accumulator::h200, FormatId::fp16, 16) * outcome.magnitude);
  EXPECT_LE(outcome.error, outcome.bound);
}

TEST(AccumulationError, Int32IsExactUntilItCanWrap) {
  EXPECT_EQ(accumulation_error(Accumulator::int32, FormatId::int8, int32_safe_products), 0);
  EXPECT_EQ(accumulation_error(Accumulator::int32, FormatId::int8, int32_safe_products + 1), infinity);
  EXPECT_EQ(accumulation_floor(Accumulator::int32, FormatId::int8, 1000, 127), 0);
}

TEST(AccumulationError, Int128IsExactUntilItCanWrap) {
  EXPECT_EQ(accumulation_error(Accumulator::int128, FormatId::int52, int128_safe_products), 0);
  EXPECT_EQ(accumulation_error(Accumulator::int128, FormatId::int52, int128_safe_products + 1), infinity);
  EXPECT_EQ(accumulation_error(Accumulator::int128, FormatId::int8, 1), infinity);
  EXPECT_EQ(accumulation_floor(Accumulator::int128, FormatId::int52, 1000, 0x1p51), 0);
}

// cuBLAS: any unit that its kernels may run on, and then one addition in fp32.
constexpr Accumulator vendor_units[] = {Accumulator::fp32, Accumulator::a100, Accumulator::h200,
                                        Accumulator::h200_mma};

TEST(AccumulationError, CublasBoundIsNoLessThanAnyUnits) {
  for (const FormatId format : {FormatId::fp16, FormatId::bf16, FormatId::tf32}) {
    double previous = 0;
    for (std::int64_t n = 1; n <= (1 << 20); n += 1 + n / 7) {
      const double error = accumulation_error(Accumulator::cublas, format, n);
      ASSERT_TRUE(std::isfinite(error)) << n;
      ASSERT_GE(error, previous) << "it grows with n = " << n;
      previous = error;
      for (const Accumulator unit : vendor_units) {
        ASSERT_GE(error, accumulation_error(unit, format, n) + 0x1p-24)
            << accumulator_name(unit) << ", " << n;
        for (const double largest : {0x1p-20, 1.0, 0x1p15})
          ASSERT_GE(accumulation_floor(Accumulator::cublas, format, n, largest),
                    accumulation_floor(unit, format, n, largest))
              << accumulator_name(unit) << ", " << n;
      }
    }
  }
  for (const FormatId format : {FormatId::int8, FormatId::int52, FormatId::fp64, FormatId::fp8_e4m3})
    EXPECT_EQ(accumulation_error(Accumulator::cublas, format, 1), infinity);
}

// Each unit's run begins at zero and is added to the sum outside.
template <FormatId Id>
void expect_vendor_bound_holds() {
  const Format& format = format_of<Id>;
  Generator generator(format);
  for (const Accumulator unit : vendor_units) {
    SCOPED_TRACE(accumulator_name(unit));
    visit_model<Id>(unit, [&]<class Model>() {
      for (const Kind kind : kinds) {
        for (const std::int64_t n : sum_lengths) {
          const Outcome outcome = measure<Model>(Accumulator::cublas, format, generator.draw(kind, n), true);
          ASSERT_LE(outcome.error, outcome.bound) << "kind " << static_cast<int>(kind) << ", n = " << n;
        }
      }
    });
  }
}

TEST(AccumulationError, CublasBoundHoldsForRunsOfEveryUnit) {
  expect_vendor_bound_holds<FormatId::fp16>();
  expect_vendor_bound_holds<FormatId::bf16>();
  expect_vendor_bound_holds<FormatId::tf32>();
}

TEST(AccumulationError, HasTheValuesOfItsFormulas) {
  constexpr double unit = 0x1p-24;
  // 16 products and the accumulator in one instruction: (16 / 4 + 1) 2^-23 = 10 u.
  EXPECT_EQ(accumulation_error(Accumulator::h200, FormatId::fp16, 16), 10 * unit);
  EXPECT_EQ(accumulation_error(Accumulator::h200, FormatId::fp16, 17), (17.0 / 4 + 2) * 2 * unit);
  EXPECT_EQ(accumulation_error(Accumulator::h200, FormatId::tf32, 8), 6 * unit);
  EXPECT_EQ(accumulation_error(Accumulator::h200_mma, FormatId::tf32, 8), 8 * unit);
  EXPECT_EQ(accumulation_error(Accumulator::v100, FormatId::fp16, 4), 10 * unit);
  EXPECT_EQ(accumulation_error(Accumulator::a100, FormatId::bf16, 8), 10 * unit);
  EXPECT_NEAR(accumulation_error(Accumulator::fp32, FormatId::fp32, 1), unit, 1e-11 * unit);
  EXPECT_GE(accumulation_error(Accumulator::fp32, FormatId::fp32, 1), unit);
  EXPECT_NEAR(accumulation_error(Accumulator::amx_bf16, FormatId::bf16, 32), 17 * unit, 1e-4 * unit);
  EXPECT_EQ(accumulation_error(Accumulator::h200, FormatId::fp16, 0), 0);
  EXPECT_EQ(accumulation_floor(Accumulator::h200, FormatId::fp16, 0, 1), 0);
  EXPECT_EQ(accumulation_error(Accumulator::v100, FormatId::bf16, 1), infinity);
  EXPECT_EQ(accumulation_floor(Accumulator::v100, FormatId::bf16, 1, 1), infinity);
}

}  // namespace
}  // namespace kintsugi::core
