// Tests that every family of kernels for int8 slices has the bits of the reference engine.
#include "engines/cpu/products.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "engines/registry.hpp"
#include "formats/formats.hpp"
#include "tests/engines/cpu/family_operands.hpp"
#include "tests/support/effort.hpp"
#include "tools/measure/generators/random.hpp"

namespace kintsugi::core {
namespace {

constexpr Structure<4> grouped_int8{
    {Term{1, 1, 1}, Term{1, 0, 0}, Term{0, 1, 0}, Term{0, 0, 2}}, 2, 2, 3, 0, 0};

struct Int8Kind {
  using Element = std::int8_t;
  using Kernels = Int8Kernels;
  static constexpr const Format& format = int8;
  static constexpr SumType sum_type = SumType::i64;
  static constexpr Accumulator accumulator = Accumulator::int32;
  static constexpr std::byte padding{0};

  static std::size_t worker_bytes(const Int8Kernels& kernels) { return int8_worker_bytes(kernels); }
  static void multiply(const Multiplication& task, const Int8Kernels& kernels) {
    multiply_int8(task, kernels);
  }
};

// Slices of random bytes, -128 included.
test::FamilyOperands<Int8Kind> random_operands(const Schedule& schedule, std::int64_t m, std::int64_t n,
                                               std::int64_t k, std::uint64_t seed) {
  const auto byte = [](std::uint64_t bits, int) { return static_cast<std::int8_t>(bits); };
  return {schedule, m, n, k, 2 * seed, byte, 2 * seed + 1, byte};
}

void expect_int8_bits_of_reference(const Schedule& schedule, std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto operands =
      random_operands(schedule, m, n, k, static_cast<std::uint64_t>(1 + m + 1000 * n + 1000000 * k));
  const std::vector<std::byte> expected = operands.reference();
  for (const Int8Kernels* kernels : int8_families()) {
    EXPECT_TRUE(operands.by(*kernels, 1) == expected)
        << kernels->name << " " << m << " x " << n << " x " << k << " block " << schedule.k_block;
  }
}

TEST(Int8, TilesAndTheirEdgesHaveTheBitsOfTheReference) {
  const Schedule schedule = make_schedule(single_product);
  for (const std::int64_t m : {1, 15, 17, 64, 127, 128, 129}) {
    for (const std::int64_t n : {1, 3, 5, 16, 65, 128, 130}) expect_int8_bits_of_reference(schedule, m, n, 5);
  }
}

TEST(Int8, LengthsHaveTheBitsOfTheReference) {
  const Schedule schedule = make_schedule(single_product);
  for (std::int64_t k = 1; k <= 200; ++k) expect_int8_bits_of_reference(schedule, 7, 6, k);
  for (const std::int64_t k : {255, 256, 257, 511, 512, 513, 1025, 2500}) {
    expect_int8_bits_of_reference(schedule, 18, 5, k);
  }
}

TEST(Int8, RandomShapesKBlocksAndGroupsHaveTheBitsOfTheReference) {
  std::uint64_t state = 7;
  const auto draw = [&](std::uint64_t min, std::uint64_t max) {
    return static_cast<std::int64_t>(min + measure::mix_bits(state++) % (max - min + 1));
  };
  for (int round = 0; round < 40; ++round) {
    Schedule schedule = make_schedule(grouped_int8);
    const std::int64_t k = draw(1, 200);
    schedule.k_block = draw(0, 1) == 0 ? 0 : draw(1, static_cast<std::uint64_t>(k));
    schedule.k_step = draw(0, 1) == 0 ? 0 : draw(1, static_cast<std::uint64_t>(k));
    const std::int64_t m = draw(1, 130);
    expect_int8_bits_of_reference(schedule, m, draw(1, 130), k);
  }
}

TEST(Int8, BitsDoNotDependOnThreads) {
  const Schedule schedule = make_schedule(grouped_int8);
  const auto operands = random_operands(schedule, 390, 260, 70, 3);
  for (const Int8Kernels* kernels : int8_families()) {
    const std::vector<std::byte> single_thread = operands.by(*kernels, 1);
    for (const int threads : test::a_part_of({2, 7, 3, 4, 5, 6, 8})) {
      EXPECT_TRUE(operands.by(*kernels, threads) == single_thread) << kernels->name << " " << threads;
    }
  }
}

// All elements +-127 and -128, k on both sides of the INT32 limit: sums over all of k would wrap; sums over
// k-blocks are added outside the accumulators before that.
TEST(Int8, SumsWrapAtTheInt32LimitUnlessAddedByKBlocks) {
  struct Edge {
    int a, b;
    std::int64_t k, block;
    bool wraps;
  };
  for (const auto& [a, b, k, block, wraps] : {Edge{127, 127, 133144, 0, false},
                                              {127, 127, 133145, 0, true},
                                              {-128, -128, 131071, 0, false},
                                              {-128, -128, 131072, 0, true},
                                              {-128, 127, 132104, 0, false},
                                              {127, 127, 133145, 65536, false},
                                              {-128, -128, 400000, 131071, false}}) {
    Schedule schedule = make_schedule(single_product);
    schedule.k_block = block;
    const auto constant = [length = k](int value, std::vector<std::byte>& memory) {
      Slices slices = make_slices(int8, SliceStorage::packed, 1, 1, length);
      memory.assign(slices.bytes(), std::byte{0});
      slices.data = memory.data();
      std::fill_n(slices.vector<std::int8_t>(0, 0), length, static_cast<std::int8_t>(value));
      return slices;
    };
    std::vector<std::byte> a_memory, b_memory;
    const Slices slices_a = constant(a, a_memory);
    const Slices slices_b = constant(b, b_memory);
    const std::int64_t exact = k * a * b;
    EXPECT_EQ(wraps, block == 0 && exact > std::numeric_limits<std::int32_t>::max());
    for (const Int8Kernels* kernels : int8_families()) {
      std::int64_t sum = 0;
      const Accumulators sums{reinterpret_cast<std::byte*>(&sum), 1, 1, 1, SumType::i64};
      std::vector<std::byte> scratch(int8_worker_bytes(*kernels));
      multiply_int8({&schedule, slices_a, slices_b, sums, Accumulator::int32, scratch.data(), 1}, *kernels);
      EXPECT_EQ(sum, wraps ? exact - (std::int64_t{1} << 32) : exact) << kernels->name << " " << k;
    }
  }
}

TEST(Int8, FamilyIsSelectedByName) {
  const auto choose = [](std::string_view name) {
    return choose_kernels(int8_families(), name, "KINTSUGI_CPU_INT8");
  };
  EXPECT_EQ(choose("auto").kernels, int8_families().front());
  EXPECT_EQ(int8_families().back(), &int8_generic);
  for (const Int8Kernels* kernels : int8_families()) {
    EXPECT_EQ(choose(kernels->name).kernels, kernels);
    EXPECT_EQ(choose(kernels->name).reason, "");
  }
  EXPECT_THAT(choose("abacus").reason,
              testing::AllOf(testing::HasSubstr("\"abacus\""), testing::HasSubstr("auto"),
                             testing::HasSubstr(int8_families().front()->name),
                             testing::HasSubstr(int8_generic.name)));
}

}  // namespace
}  // namespace kintsugi::core
