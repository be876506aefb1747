// Tests that every family of kernels for 52-bit words has the bits of the reference engine.
#include "engines/cpu/products.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engines/registry.hpp"
#include "formats/formats.hpp"
#include "tests/engines/cpu/family_operands.hpp"
#include "tests/support/effort.hpp"
#include "tools/measure/generators/random.hpp"

namespace kintsugi::core {
namespace {

constexpr Structure<4> grouped_int52{
    {Term{1, 1, 2}, Term{1, 0, 1}, Term{0, 1, 1}, Term{0, 0, 0}}, 2, 2, 3, 0, 0};

constexpr std::int64_t min_word = -(std::int64_t{1} << 51);
constexpr std::int64_t max_word = (std::int64_t{1} << 51) - 1;

enum class Fill { random, extremes, least, zero_words };

std::int64_t word_of(Fill fill, std::uint64_t bits, int slice) {
  switch (fill) {
    case Fill::random: break;
    case Fill::extremes: return (bits & 1U) != 0 ? min_word : max_word;
    case Fill::least: return min_word;
    case Fill::zero_words: return slice == 1 ? 0 : static_cast<std::int64_t>(bits) >> 12;
  }
  return static_cast<std::int64_t>(bits) >> 12;
}

// The padding of a vector along k is garbage, since no kernel reads it.
struct Int52Kind {
  using Element = std::int64_t;
  using Kernels = Int52Kernels;
  static constexpr const Format& format = int52;
  static constexpr SumType sum_type = SumType::i128;
  static constexpr Accumulator accumulator = Accumulator::int128;
  static constexpr std::byte padding{0xab};

  static std::size_t worker_bytes(const Int52Kernels& kernels) { return int52_worker_bytes(kernels); }
  static void multiply(const Multiplication& task, const Int52Kernels& kernels) {
    multiply_int52(task, kernels);
  }
};

test::FamilyOperands<Int52Kind> filled_operands(const Schedule& schedule, std::int64_t m, std::int64_t n,
                                                std::int64_t k, Fill fill_a, Fill fill_b = Fill::random) {
  const auto word = [](Fill fill) {
    return [fill](std::uint64_t bits, int slice) { return word_of(fill, bits, slice); };
  };
  return {schedule, m, n, k, 1, word(fill_a), 2, word(fill_b)};
}

void expect_int52_bits_of_reference(const Schedule& schedule, std::int64_t m, std::int64_t n, std::int64_t k,
                                    Fill fill_a = Fill::random, Fill fill_b = Fill::random) {
  const auto operands = filled_operands(schedule, m, n, k, fill_a, fill_b);
  const std::vector<std::byte> expected = operands.reference();
  for (const Int52Kernels* kernels : int52_families()) {
    EXPECT_TRUE(operands.by(*kernels, 1) == expected)
        << kernels->name << " " << m << " x " << n << " x " << k << " fill " << static_cast<int>(fill_a)
        << ", " << static_cast<int>(fill_b);
  }
}

TEST(Int52Products, TilesAndTheirEdgesHaveTheBitsOfTheReference) {
  const Schedule schedule = make_schedule(single_product);
  for (const std::int64_t m : {1, 7, 8, 9, 17, 127, 130, 255, 257}) {
    for (const std::int64_t n : {1, 3, 4, 5, 65, 129, 256, 258})
      expect_int52_bits_of_reference(schedule, m, n, 5);
  }
}

TEST(Int52Products, LengthsHaveTheBitsOfTheReference) {
  const Schedule schedule = make_schedule(single_product);
  for (std::int64_t k = 1; k <= 150; ++k) expect_int52_bits_of_reference(schedule, 7, 6, k);
  for (const std::int64_t k : {255, 256, 257, 1025, 2500}) expect_int52_bits_of_reference(schedule, 18, 5, k);
}

// 4096 products of the largest words fill the 64-bit sums of the kernels, which must be added outside by
// then.
TEST(Int52Products, SumsOfTheLargestWordsDoNotOverflow) {
  const Schedule schedule = make_schedule(single_product);
  for (const std::int64_t k : {4095, 4096, 4097, 8192, 8193, 12289}) {
    for (const Fill fill_a : {Fill::extremes, Fill::least}) {
      for (const Fill fill_b : {Fill::extremes, Fill::least}) {
        expect_int52_bits_of_reference(schedule, 9, 5, k, fill_a, fill_b);
      }
    }
  }
  if (!test::thorough) return;
  for (const std::int64_t k : {65535, 65536, 65537}) {
    expect_int52_bits_of_reference(schedule, 3, 2, k, Fill::least, Fill::least);
  }
}

TEST(Int52Products, GroupsAndZeroWordsHaveTheBitsOfTheReference) {
  const Schedule schedule = make_schedule(grouped_int52);
  for (const auto& [m, n, k] : {std::tuple{5, 3, 64}, {130, 129, 70}, {260, 3, 33}}) {
    for (const Fill fill_a : {Fill::random, Fill::zero_words}) {
      for (const Fill fill_b : {Fill::random, Fill::zero_words}) {
        expect_int52_bits_of_reference(schedule, m, n, k, fill_a, fill_b);
      }
    }
  }
}

TEST(Int52Products, BitsDoNotDependOnThreads) {
  const Schedule schedule = make_schedule(grouped_int52);
  const auto operands = filled_operands(schedule, 390, 530, 70, Fill::random);
  for (const Int52Kernels* kernels : int52_families()) {
    const std::vector<std::byte> single_thread = operands.by(*kernels, 1);
    for (const int threads : test::a_part_of({2, 7, 3, 4, 5, 6, 8})) {
      EXPECT_TRUE(operands.by(*kernels, threads) == single_thread) << kernels->name << " " << threads;
    }
  }
}

TEST(Int52Products, FamilyIsSelectedByName) {
  const auto choose = [](std::string_view name) {
    return choose_kernels(int52_families(), name, "KINTSUGI_CPU_INT52");
  };
  EXPECT_EQ(choose("auto").kernels, int52_families().front());
  EXPECT_EQ(int52_families().back(), &int52_generic);
  for (const Int52Kernels* kernels : int52_families()) {
    EXPECT_EQ(choose(kernels->name).kernels, kernels);
    EXPECT_EQ(choose(kernels->name).reason, "");
  }
  EXPECT_THAT(choose("abacus").reason,
              testing::AllOf(testing::HasSubstr("\"abacus\""), testing::HasSubstr("auto"),
                             testing::HasSubstr(int52_families().front()->name),
                             testing::HasSubstr(int52_generic.name)));
}

}  // namespace
}  // namespace kintsugi::core
