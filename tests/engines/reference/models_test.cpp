// Tests the models of matrix engines on special values and on cases with known results.
#include "engines/reference/models.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "model_formats.hpp"

namespace kintsugi::core {
namespace {

// sum + a . b for operands given as doubles that the format holds.
template <class Model>
typename Model::Sum dot(const Format& format, const std::vector<double>& a, const std::vector<double>& b,
                        typename Model::Sum sum) {
  std::vector<typename Model::Element> x;
  std::vector<typename Model::Element> y;
  for (const double value : a) x.push_back(Model::load(format, encode(format, value)));
  for (const double value : b) y.push_back(Model::load(format, encode(format, value)));
  return Model::run(x.data(), y.data(), static_cast<std::int64_t>(x.size()), sum);
}

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Calls visitor with every model with float sums and one format that it supports.
template <class Visitor>
void for_each_float_model(Visitor&& visitor) {
  for (const Accumulator accumulator : accumulators) {
    SCOPED_TRACE(accumulator_name(accumulator));
    const auto on_half = [&]<class Model>() { visitor.template operator()<Model>(fp16); };
    const auto on_brain = [&]<class Model>() { visitor.template operator()<Model>(bf16); };
    if (!visit_model<half>(accumulator, on_half)) visit_model<brain>(accumulator, on_brain);
  }
  SCOPED_TRACE("tf32");
  visitor.template operator()<A100<tensor>>(tf32);
  visitor.template operator()<H200<tensor>>(tf32);
  visitor.template operator()<H200Mma<tensor>>(tf32);
}

// AMX fills a partial block with zeros, which turn a chain that was flushed to -0 into +0.
TEST(AmxBf16Model, APartialBlockHasTheBitsOfAFilledOne) {
  std::mt19937 random(3);
  const auto element = [&] { return std::ldexp(std::uniform_real_distribution<>(-2, 2)(random), -65); };
  for (int n = 1; n < AmxBf16::block; ++n) {
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::vector<double> a, b;
      for (int p = 0; p < n; ++p) {
        a.push_back(element());
        b.push_back(element());
      }
      const float partial = dot<AmxBf16>(bf16, a, b, -0.0F);
      a.resize(AmxBf16::block);
      b.resize(AmxBf16::block);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(dot<AmxBf16>(bf16, a, b, -0.0F)),
                std::bit_cast<std::uint32_t>(partial))
          << n;
    }
  }
}

TEST(SpecialValues, PropagateAsInIeee754) {
  for_each_float_model([]<class Model>(const Format& format) {
    const auto run = [&](std::vector<double> a, std::vector<double> b, double c) {
      return dot<Model>(format, a, b, static_cast<float>(c));
    };
    EXPECT_TRUE(std::isnan(run({1, nan}, {1, 0}, 0)));
    EXPECT_TRUE(std::isnan(run({1, 1}, {1, 1}, nan)));
    EXPECT_TRUE(std::isnan(run({inf, 1}, {0, 1}, 0)));
    EXPECT_TRUE(std::isnan(run({inf, inf}, {1, -1}, 0)));
    EXPECT_TRUE(std::isnan(run({inf, 1}, {1, 1}, -inf)));
    EXPECT_EQ(run({inf, 5}, {2, 1}, 1), inf);
    EXPECT_EQ(run({inf, 5}, {-2, 1}, 1), -inf);
    EXPECT_EQ(run({-inf, -inf}, {-inf, -1}, inf), inf);
    EXPECT_EQ(run({1, 1}, {1, 1}, -inf), -inf);
    EXPECT_EQ(run({1}, {-1}, 1), 0);
    EXPECT_EQ(bits_of(run({1}, {-1}, 1)), 0U);
    EXPECT_EQ(run({}, {}, 3), 3);
    EXPECT_EQ(bits_of(run({}, {}, -0.0)), 0x80000000U);
  });
}

TEST(SpecialValues, OverflowIsInfinite) {
  for_each_float_model([]<class Model>(const Format& format) {
    const float largest = std::numeric_limits<float>::max();
    if (format.max_exponent == 15) return;  // products of fp16 cannot move FLT_MAX
    const double big = 0x1p127;
    const double factor = 0x1p-23;  // times big: one unit in the last place of FLT_MAX
    EXPECT_EQ((dot<Model>(format, {big}, {factor}, largest)), inf);
    EXPECT_EQ((dot<Model>(format, {big}, {-factor}, -largest)), -inf);
    EXPECT_EQ((dot<Model>(format, {big, big}, {2, 2}, 0)), inf);
  });
}

TEST(ZeroPadding, ChangesNothing) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for_each_float_model([&]<class Model>(const Format& format) {
    for (const std::size_t n : {1U, 2U, 3U, 5U, 7U, 15U, 17U, 31U, 33U, 63U, 65U}) {
      std::vector<double> a(n);
      std::vector<double> b(n);
      for (double& x : a) x = decode(format, encode(format, normal(random)));
      for (double& x : b) x = decode(format, encode(format, normal(random)));
      const auto c = static_cast<float>(normal(random));
      const float sum = dot<Model>(format, a, b, c);
      for (int zeros = 0; zeros < 70; ++zeros) {
        a.push_back(zeros % 3 == 0 ? 0.0 : 1.5);
        b.push_back(zeros % 3 == 0 ? 1.5 : 0.0);
        ASSERT_EQ(bits_of(dot<Model>(format, a, b, c)), bits_of(sum)) << n << " products, zero " << zeros;
      }
    }
  });
}

// Fasi et al., section "Accuracy of the dot products" and "Rounding modes": addends below the last place of
// the largest one are lost one by one, even where together they would count.
TEST(FromTheLiterature, V100LosesTinyAddends) {
  const std::vector<double> tiny(4, 0x1p-12);
  EXPECT_EQ((dot<V100<half>>(fp16, tiny, tiny, 1)), 1);             // 4 * 2^-24, no extra bit
  EXPECT_EQ((dot<A100<half>>(fp16, tiny, tiny, 1)), 1 + 0x1p-22F);  // one extra bit: 2^-24 stays
  // Truncation of each addend, not rounding, for both signs.
  const std::vector<double> a{0x1p-11, 0x1p-12, 0x1p-12, 0x1p-12};
  const std::vector<double> b{0x1p-12, 0x1p-12, 0x1p-12, 0x1p-13};
  EXPECT_EQ((dot<A100<half>>(fp16, a, b, 1)), 1 + 0x1p-23F * 2);  // 2^-23 + 2^-24 + 2^-24, 2^-25 lost
  EXPECT_EQ((dot<V100<half>>(fp16, a, b, 1)), 1 + 0x1p-23F);
  EXPECT_EQ((dot<V100<half>>(fp16, a, b, -1)), -1 + 0x1p-23F);
}

// Partial sums are not normalized within a block: beside c = 1 four products of 2^-24 are cut one by one,
// beside c = 1 - 2^-24 they all count, so the larger c gives the smaller result (Fasi et al., on
// monotonicity).
TEST(FromTheLiterature, V100IsNotMonotonic) {
  const std::vector<double> tiny(4, 0x1p-12);
  const float sum_beside_less_than_one = dot<V100<half>>(fp16, tiny, tiny, 1 - 0x1p-24F);
  const float sum_beside_one = dot<V100<half>>(fp16, tiny, tiny, 1);
  EXPECT_EQ(sum_beside_less_than_one, 1 + 0x1p-23F);  // 1 + 3 * 2^-24, truncated
  EXPECT_EQ(sum_beside_one, 1);
  EXPECT_GT(sum_beside_less_than_one, sum_beside_one);
}

TEST(FromTheLiterature, BlocksHave4ProductsOnVoltaAnd8OnAmpere) {
  // A small product after 1 and -1 survives if the two cancelled in an earlier block, or if it lies on the
  // grid that 1 sets.
  std::vector<double> a(8, 0);
  std::vector<double> b(8, 1);
  a[0] = 1;
  a[3] = -1;
  a[4] = 0x1p-24;
  EXPECT_EQ((dot<V100<half>>(fp16, a, b, 0)), 0x1p-24F);  // 4 + 4: second block alone
  EXPECT_EQ((dot<A100<half>>(fp16, a, b, 0)), 0x1p-24F);  // within its grid of 2^-24
  a[4] = 0x1p-14;
  b[4] = 0x1p-11;
  EXPECT_EQ((dot<V100<half>>(fp16, a, b, 0)), 0x1p-25F);
  EXPECT_EQ((dot<A100<half>>(fp16, a, b, 0)), 0);           // one block of 8, below its grid
  EXPECT_EQ((dot<H200<half>>(fp16, a, b, 0)), 0x1p-25F);    // two extra bits
  EXPECT_EQ((dot<A100<tensor>>(tf32, a, b, 0)), 0x1p-25F);  // blocks of 4
}

TEST(TensorCore, SubnormalFactorsCountWithTheSmallestNormalExponent) {
  // 2^-24 * 1 sets the grid of exponent -14: 2^-39 with two extra bits; a product of 2^-40 is lost,
  // though it is only 2^-16 of the sum.
  EXPECT_EQ((dot<H200<half>>(fp16, {0x1p-24, 0x1p-14}, {1, 0x1p-14 * 0x1p-10}, 0)), 0x1p-24F + 0x1p-38F);
  EXPECT_EQ((dot<H200<half>>(fp16, {0x1p-24, 0x1p-20}, {1, 0x1p-20}, 0)), 0x1p-24F);
}

// Tiny sums are aligned to 2^-133, not to their own exponent. The operands and the result are of an H100
// (MATLAB-tensor-core, issue 7).
TEST(TensorCore, AlignsTinySumsToTheSmallestAlignment) {
  constexpr std::uint16_t a[] = {0x9b94, 0x19f3, 0x9a2e, 0x1a67, 0x9a25, 0x9b4e, 0x9b29, 0x9a33,
                                 0x99e0, 0x1a14, 0x9914, 0x99d1, 0x9ae9, 0x1b1a, 0x9a9c, 0x1b3a};
  constexpr std::uint16_t b[] = {0x9aaf, 0x99f3, 0x9acc, 0x1b7c, 0x19ed, 0x1b25, 0x9a1b, 0x9a20,
                                 0x9af7, 0x9a48, 0x1ae1, 0x1b32, 0x1b12, 0x1b0e, 0x9a68, 0x1735};
  const auto sum = [&]<class Model>() {
    std::vector<typename Model::Element> x;
    std::vector<typename Model::Element> y;
    for (const std::uint16_t bits : a) x.push_back(Model::load(bf16, bits));
    for (const std::uint16_t bits : b) y.push_back(Model::load(bf16, bits));
    return Model::run(x.data(), y.data(), 16, 0);
  };
  EXPECT_EQ(sum.operator()<H200<brain>>(), 0x1.6p-146F);
  EXPECT_EQ((sum.operator()<TensorCore<brain, 16, 2>>()), 0x1.4p-146F);
}

TEST(Int32, WrapsModulo2To32) {
  EXPECT_EQ((dot<Int32>(int8, {127, -128}, {127, -128}, 0)), 127 * 127 + 128 * 128);
  EXPECT_EQ((dot<Int32>(int8, {1}, {1}, std::numeric_limits<std::int32_t>::max())),
            std::numeric_limits<std::int32_t>::min());
  const std::vector<double> low(131072, -128);
  EXPECT_EQ((dot<Int32>(int8, low, low, 0)), std::numeric_limits<std::int32_t>::min());
  const std::vector<double> safe(static_cast<std::size_t>(int32_safe_products), -128);
  EXPECT_EQ((dot<Int32>(int8, safe, safe, 0)), int32_safe_products * 16384);
}

TEST(Int128, HoldsAsManyProductsAsAreSafe) {
  const std::vector<double> low(1000, -0x1p51);
  EXPECT_TRUE((dot<Int128>(int52, low, low, 0)) == Int128::Sum{1000} << 102);
  const Int128::Sum most = (Int128::Sum{int128_safe_products - 1000}) << 102;
  EXPECT_TRUE((dot<Int128>(int52, low, low, most)) > most);
  EXPECT_TRUE((dot<Int128>(int52, {-0x1p51}, {-0x1p51}, Int128::Sum{int128_safe_products} << 102)) < 0);
  EXPECT_TRUE((dot<Int128>(int52, {0x1p51 - 1, 3}, {-0x1p51, 5}, 1)) ==
              16 - ((Int128::Sum{1} << 102) - (Int128::Sum{1} << 51)));
}

TEST(Fp32Nearest, IsFma) {
  EXPECT_EQ((dot<Fp32Nearest>(fp32, {1 + 0x1p-23}, {1 + 0x1p-23}, -1)), 0x1p-22F + 0x1p-46F);
  EXPECT_EQ((dot<Fp32Nearest>(tf32, {0x1p-12}, {0x1p-12}, 1)), 1);
  EXPECT_EQ((dot<Fp32Nearest>(fp8_e4m3, {448}, {448}, 0)), 448.0F * 448.0F);
}

TEST(CpuBf16, FlushesSubnormals) {
  const float subnormal = 0x1p-127F;
  EXPECT_EQ((dot<Avx512Bf16>(bf16, {0}, {0}, subnormal)), 0);
  EXPECT_EQ((dot<AmxBf16>(bf16, {0}, {0}, subnormal)), 0);
  EXPECT_EQ((dot<Avx512Bf16>(bf16, {0x1p-127}, {0x1p127}, 0)), 0);
  EXPECT_EQ((dot<AmxBf16>(bf16, {0x1p-127}, {0x1p127}, 0)), 0);
  EXPECT_EQ((dot<AmxBf16>(bf16, {0x1p-63}, {0x1p-64}, 0)), 0);
  EXPECT_EQ((dot<H200<brain>>(bf16, {0x1p-63}, {0x1p-64}, 0)), 0x1p-127F);
}

TEST(Cdna2, AddsFourProductsInPairs) {
  // From left to right, 1 would be lost before the other small products arrive.
  EXPECT_EQ((dot<Cdna2>(fp16, {4096, 1, 1, 1}, {4096, 1, 1, 1}, 0)), 0x1p24F + 2);
  EXPECT_EQ((dot<Cdna2>(fp16, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}, 0x1p24F)), 0x1p24F + 4);
  EXPECT_EQ((dot<Cdna2>(fp16, {1, 1, 1, 1}, {1, 1, 1, 1}, 0x1p25F)), 0x1p25F + 4);
}

TEST(Cdna2, FlushesSubnormals) {
  EXPECT_EQ((dot<Cdna2>(fp16, {0x1p-15}, {1}, 0)), 0);
  EXPECT_EQ((dot<Cdna2>(fp16, {1}, {0x1.ffp-15}, 1)), 1);
  EXPECT_EQ((dot<Cdna2>(fp16, {0x1p-14}, {0x1p-14}, 0)), 0x1p-28F);
  EXPECT_EQ((dot<Cdna2>(fp16, {0}, {0}, 0x1p-127F)), 0);
  EXPECT_EQ((dot<Fp32Nearest>(fp16, {0x1p-15}, {1}, 0)), 0x1p-15F);
}

TEST(Names, FindEveryAccumulator) {
  for (const Accumulator accumulator : accumulators) {
    EXPECT_EQ(find_accumulator(accumulator_name(accumulator)), accumulator);
  }
  EXPECT_EQ(find_accumulator("h100"), std::nullopt);
  EXPECT_EQ(accumulator_names(),
            "fp32, v100, a100, h200, h200-mma, amx-bf16, avx512-bf16, cdna2, int32, int128, fp64, cublas");
}

template <FormatId Id>
void expect_models_support_what_the_table_says() {
  for (const Accumulator accumulator : accumulators) {
    bool model_supports = false;
    const bool found =
        visit_model<Id>(accumulator, [&]<class Model>() { model_supports = Model::supports(Id); });
    EXPECT_EQ(found, supports(accumulator, Id)) << accumulator_name(accumulator);
    EXPECT_EQ(model_supports, found) << accumulator_name(accumulator);
  }
}

TEST(Names, ModelsSupportTheFormatsOfTheTable) {
  expect_models_support_what_the_table_says<FormatId::fp16>();
  expect_models_support_what_the_table_says<FormatId::bf16>();
  expect_models_support_what_the_table_says<FormatId::tf32>();
  expect_models_support_what_the_table_says<FormatId::fp8_e4m3>();
  expect_models_support_what_the_table_says<FormatId::int8>();
  expect_models_support_what_the_table_says<FormatId::fp32>();
  expect_models_support_what_the_table_says<FormatId::fp64>();
}

}  // namespace
}  // namespace kintsugi::core
