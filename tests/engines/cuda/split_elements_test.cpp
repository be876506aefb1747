// Tests on the host the arithmetic of the split kernels of the engine cuda: FP32 arithmetic is exact wherever
// a kernel uses it, and integers by bytes have the right digits.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "engines/cuda/split/integer_elements.hpp"
#include "engines/cuda/split/magnitudes.hpp"
#include "engines/cuda/split/scaling.hpp"
#include "schemes/program.hpp"
#include "tools/measure/generators/random.hpp"

// Included after the accumulators, since GCC warns that their enumerators shadow the names used here.
#include "formats/formats.hpp"

namespace kintsugi::core::cuda {
namespace {

float with_field(measure::Random& random, std::int64_t min, std::int64_t max) {
  const auto field = static_cast<std::uint32_t>(random.integer(min, max));
  std::uint32_t fraction = static_cast<std::uint32_t>(random.bits()) & 0x7fffffU;
  // Makes ties, long runs of ones and single bits likely.
  if (random.integer(0, 2) == 0) fraction &= 0x7fffffU << random.integer(0, 23);
  if (random.integer(0, 3) == 0) fraction |= 0x7fffffU & (0x7fffffU << random.integer(0, 23));
  return std::bit_cast<float>((random.flip() ? 0x80000000U : 0U) | field << 23 | (fraction & 0x7fffffU));
}

// The kernels' FP32 arithmetic; a conversion in hardware rounds once, as encode() does.
std::vector<std::uint64_t> split_in_fp32(const SplitRule& rule, const Scaling& scaling, float x) {
  std::vector<std::uint64_t> patterns;
  float residual = x * static_cast<float>(scaling.first) * static_cast<float>(scaling.second);
  for (int s = 0; s < rule.slices; ++s) {
    const Rounding rounding = s == 0 ? rule.first_rounding : rule.residual_rounding;
    patterns.push_back(encode(*rule.format, residual, rounding));
    residual -= static_cast<float>(decode(*rule.format, patterns.back()));
    residual *= static_cast<float>(power_of_two(rule.residual_exponent));
  }
  return patterns;
}

std::vector<std::uint64_t> by_rule(const SplitRule& rule, int scale, double x) {
  std::vector<std::uint64_t> patterns(static_cast<std::size_t>(rule.slices));
  split_element(rule, x, scale,
                [&](int s, std::uint64_t pattern) { patterns[static_cast<std::size_t>(s)] = pattern; });
  return patterns;
}

TEST(PlainScaling, IsUsedOnlyWhereFp32ArithmeticIsExact) {
  measure::Random random(17);
  constexpr std::array roundings{Rounding::nearest_even, Rounding::towards_zero, Rounding::bit_cut};
  constexpr std::array kinds{ElementKind::fp16, ElementKind::bf16, ElementKind::tf32};
  int plain = 0;
  int others = 0;
  for (int round = 0; round < 200000; ++round) {
    const auto kind = kinds[static_cast<std::size_t>(random.integer(0, 2))];
    const Format& format = kind == ElementKind::fp16 ? fp16 : kind == ElementKind::bf16 ? bf16 : tf32;
    SplitRule rule = scaled_split(
        format,
        {.slices = static_cast<int>(random.integer(1, 4)),
         .residual_exponent = static_cast<int>(random.integer(0, 40)),
         .top_exponent = static_cast<int>(random.integer(-20, kind == ElementKind::fp16 ? 15 : 126))});
    rule.scale_vectors = random.flip();
    rule.first_rounding = roundings[static_cast<std::size_t>(random.integer(0, 2))];
    rule.residual_rounding = roundings[static_cast<std::size_t>(random.integer(0, 2))];
    const std::int64_t middle = random.integer(0, 254);
    std::vector<float> vector(4);
    for (float& x : vector)
      x = with_field(random, std::max<std::int64_t>(0, middle - random.integer(0, 20)), middle);
    VectorRange range;
    for (const float x : vector) extend(range, x);
    set_scale(range, rule);
    const Scaling scaling = scaling_of(kind, range, rule, largest_fitting_bound(rule, format));
    ++(scaling.plain ? plain : others);
    if (!scaling.plain) continue;
    for (const float x : vector) {
      ASSERT_EQ(split_in_fp32(rule, scaling, x), by_rule(rule, range.scale, x))
          << format.name << ", x = " << std::hexfloat << x << ", scale " << range.scale
          << ", residuals times 2^" << rule.residual_exponent << ", roundings "
          << static_cast<int>(rule.first_rounding) << " and " << static_cast<int>(rule.residual_rounding)
          << ", round " << round;
    }
  }
  EXPECT_GT(plain, 50000);
  EXPECT_GT(others, 1000);
}

TEST(PlainScaling, ResidualsFitUpToTheLargestFittingBound) {
  measure::Random random(18);
  int none = 0;
  for (int round = 0; round < 3000; ++round) {
    const Format& format = round % 3 == 0 ? fp16 : round % 3 == 1 ? bf16 : tf32;
    SplitRule rule = scaled_split(format, {.slices = static_cast<int>(random.integer(1, 5)),
                                           .residual_exponent = static_cast<int>(random.integer(0, 100))});
    rule.first_rounding = random.flip() ? Rounding::bit_cut : Rounding::nearest_even;
    rule.residual_rounding = random.flip() ? Rounding::towards_zero : Rounding::nearest_even;
    const std::int32_t largest = largest_fitting_bound(rule, format);
    if (largest == std::numeric_limits<std::int32_t>::min()) ++none;
    for (int bound = -300; bound <= 300; ++bound)
      ASSERT_EQ(residuals_fit(rule, format, bound), bound <= largest) << bound << ", round " << round;
  }
  EXPECT_GT(none, 100);
  EXPECT_LT(none, 2900);
}

// Ordinary vectors must have plain scaling; otherwise their kernels would be slow.
TEST(PlainScaling, IsUsedForOrdinaryVectors) {
  for (const char* name :
       {"fp16x3", "fp16x3-wide", "bf16x6", "bf16x3", "tf32x3", "markidis", "egemm", "legemm", "ootomo"}) {
    const SplitRule& rule = find_scheme(name)->program.split_a;
    const ElementKind kind = rule.format->id == FormatId::fp16   ? ElementKind::fp16
                             : rule.format->id == FormatId::bf16 ? ElementKind::bf16
                                                                 : ElementKind::tf32;
    for (const float smallest : {0x1p-30F, 0x1p-126F, 0x1p-149F}) {
      VectorRange range;
      extend(range, 1.0F);
      extend(range, smallest);
      set_scale(range, rule);
      EXPECT_TRUE(scaling_of(kind, range, rule, largest_fitting_bound(rule, *rule.format)).plain)
          << name << ", " << smallest;
    }
  }
}

template <class T>
void compare_magnitudes(measure::Random& random) {
  for (int round = 0; round < 2000; ++round) {
    T values[4];
    VectorRange expected;
    Magnitudes<T> magnitudes;
    Magnitudes<T> second_half;
    for (int group = 0; group < 4; ++group) {
      for (T& x : values) {
        x = static_cast<T>(with_field(random, 0, random.integer(0, 30) == 0 ? 255 : 254)) *
            static_cast<T>(random.integer(0, 5) == 0 ? 0 : 1);
        extend(expected, x);
      }
      (group < 2 ? magnitudes : second_half).add(values);
    }
    magnitudes.add(second_half);
    const VectorRange range = magnitudes.range();
    ASSERT_EQ(range.largest, expected.largest) << round;
    ASSERT_EQ(range.smallest, expected.smallest) << round;
    ASSERT_EQ(range.raised, expected.raised) << round;
    ASSERT_EQ(range.flags, expected.flags) << round;
  }
}

TEST(Magnitudes, GiveTheRange) {
  measure::Random random(5);
  compare_magnitudes<float>(random);
  compare_magnitudes<double>(random);
}

TEST(Bytes, HaveTheResiduesOfTheirInteger) {
  measure::Random random(3);
  for (int round = 0; round < 3000; ++round) {
    const int bits = static_cast<int>(random.integer(1, 61));
    std::int64_t integer = random.integer(-(std::int64_t{1} << bits), std::int64_t{1} << bits);
    if (round % 10 == 0) integer = (round % 20 == 0 ? -1 : 1) * (std::int64_t{1} << bits);
    for (int t = 0; t < max_moduli; ++t) {
      const auto residue = static_cast<std::int8_t>(
          byte_residue(balanced_digits(integer), float_modulus(byte_modulus(moduli[t]))));
      ASSERT_EQ((integer - residue) % moduli[t], 0)
          << integer << " modulo " << moduli[t] << ": " << int{residue};
      ASSERT_GE(residue, min_residue(moduli[t]));
      ASSERT_LE(residue, 127);
    }
  }
}

TEST(Bytes, HaveTheResiduesOfEverySumInFloat) {
  for (const int m : moduli) {
    const FloatModulus modulus = float_modulus(byte_modulus(m));
    const int max_sum = max_sum_of_digits(modulus.low, modulus.high);
    int expected = min_residue(m) + (m - (max_sum + min_residue(m)) % m) % m;  // of -max_sum
    for (int sum = -max_sum; sum <= max_sum; ++sum) {
      const auto residue = static_cast<std::int8_t>(residue_by_float(modulus.start + sum, modulus));
      ASSERT_EQ(residue, expected) << sum << " modulo " << m;
      expected += expected == min_residue(m) + m - 1 ? 1 - m : 1;
    }
    EXPECT_EQ((expected - 1 - max_sum) % m, 0) << m;
  }
}

TEST(Bytes, HaveTheResiduesOfEveryWideSumInFloat) {
  for (const int m : moduli) {
    const ByteModulus weights = byte_modulus(m);
    const FloatModulus modulus = wide_float_modulus(weights).eight;
    const int max_sum = max_sum_of_digits(weights);
    int expected = min_residue(m) + (m - (max_sum + min_residue(m)) % m) % m;  // of -max_sum
    for (int sum = -max_sum; sum <= max_sum; ++sum) {
      const auto residue = static_cast<std::int8_t>(residue_by_float(modulus.start + sum, modulus));
      ASSERT_EQ(residue, expected) << sum << " modulo " << m;
      expected += expected == min_residue(m) + m - 1 ? 1 - m : 1;
    }
  }
}

// The split has integers of up to 93 bits, whose residues are computed by limbs.
TEST(Bytes, HaveTheResiduesOfWideIntegers) {
  measure::Random random(6);
  for (int round = 0; round < 3000; ++round) {
    const int bits = static_cast<int>(random.integer(1, 93));
    double x = std::ldexp(random.symmetric(), bits);
    if (round % 5 == 0) x = std::ldexp(random.flip() ? 1 : -1, bits);
    if (round % 7 == 0) x = nearest_integer(x) + 0.5;
    double errors = 3;
    const WideByteDigits digits = nearest_digits(x, errors);
    ASSERT_EQ(errors, 3 + std::fabs(x - nearest_integer(x))) << x;
    split_into_residues(max_moduli, bits, x, 0, [&](int t, std::uint64_t pattern) {
      const ByteModulus weights = byte_modulus(moduli[t]);
      const auto residue = static_cast<std::int8_t>(byte_residue(digits, wide_float_modulus(weights)));
      ASSERT_EQ(residue, static_cast<std::int8_t>(pattern)) << x << " modulo " << moduli[t];
    });
  }
}

TEST(Bytes, HaveTheDigitsOfTheGrid) {
  measure::Random random(4);
  for (int round = 0; round < 20000; ++round) {
    const int slices = static_cast<int>(random.integer(1, 8));
    const SplitRule rule = grid_split(int8, slices);
    const double x = std::ldexp(random.symmetric(), static_cast<int>(random.integer(-900, 900)));
    VectorRange range;
    extend(range, x);
    set_scale(range, rule);
    const double element = round % 3 == 0 ? x * random.symmetric() : x;
    const Scaling scaling = scaling_of(ElementKind::digits, range, rule, 0);
    const auto integer = static_cast<std::int64_t>(std::nearbyint(element * scaling.first * scaling.second));
    const ByteDigits digits = balanced_digits(integer);
    const std::uint64_t bytes = std::uint64_t{digits.high} << 32 | digits.low;
    const std::vector<std::uint64_t> expected = by_rule(rule, range.scale, element);
    for (int s = 0; s < slices; ++s) {
      ASSERT_EQ(bytes >> (8 * (slices - 1 - s)) & 0xffU, expected[static_cast<std::size_t>(s)])
          << slices << " digits of " << integer << ", digit " << s;
    }
  }
}

// Checks residues of complex numbers, for all moduli of complex products, against the host's.
template <class ToDigits, class Constants>
void check_complex_residues(double largest, const ToDigits& to_digits, const Constants& constants) {
  __extension__ using Wide = __int128;
  measure::Random random(23);
  for (int t = 0; t < residue_detail::complex_moduli.count; ++t) {
    const int m = residue_detail::complex_moduli.all[t];
    const int root = residue_detail::complex_constants.roots[t];
    const ComplexByteModulus weights = complex_byte_modulus(m, root);
    const auto modulus = constants(weights);
    for (int draw = 0; draw < 2000; ++draw) {
      const auto integer = [&] {
        return draw < 4 ? (draw % 2 == 0 ? largest : -largest) : std::nearbyint(random.symmetric() * largest);
      };
      const double re = integer();
      const double im = draw < 2 ? -re : integer();
      std::uint32_t residues[3];
      complex_residues(to_digits(re), to_digits(im), modulus, root != 0, residues);
      const auto small = [m](double x) { return small_residue(x, m, 1.0 / m); };
      const std::int32_t a = small(static_cast<double>(static_cast<Wide>(re) % m));
      const std::int32_t b = small(static_cast<double>(static_cast<Wide>(im) % m));
      const std::array<std::int32_t, 3> expected =
          root != 0 ? std::array{small(a + root * b), small(a - root * b), 0}
                    : std::array{a, b, small(a + b)};
      for (int s = 0; s < 3; ++s)
        ASSERT_EQ(static_cast<std::int8_t>(residues[s]), static_cast<std::int8_t>(expected[s]))
            << re << " + i " << im << " modulo " << m;
    }
  }
}

TEST(ComplexElements, HaveTheResiduesOfTheHost) {
  check_complex_residues(
      0x1p61, [](double x) { return balanced_digits(static_cast<std::int64_t>(x)); },
      [](const ComplexByteModulus& weights) { return complex_float_modulus(weights); });
  check_complex_residues(
      0x1p93,
      [](double x) {
        double errors = 0;
        return nearest_digits(x, errors);
      },
      [](const ComplexByteModulus& weights) { return weights; });
}

TEST(ComplexElements, HaveTheResiduesOfEverySumInFloat) {
  for (int t = 0; t < residue_detail::complex_moduli.count; ++t) {
    const int m = residue_detail::complex_moduli.all[t];
    const ComplexByteModulus weights = complex_byte_modulus(m, residue_detail::complex_constants.roots[t]);
    const FloatModulus modulus = complex_float_modulus(weights).real;
    const int max_sum =
        max_sum_of_digits(weights.real.low, weights.real.high) + max_sum_of_digits(weights.low, weights.high);
    for (int sum = -max_sum; sum <= max_sum; ++sum) {
      const auto residue = static_cast<std::int8_t>(residue_by_float(modulus.start + sum, modulus));
      ASSERT_EQ(residue, small_residue(sum % m, m, 1.0 / m)) << sum << " modulo " << m;
    }
  }
}

}  // namespace
}  // namespace kintsugi::core::cuda
