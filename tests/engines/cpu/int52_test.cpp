// Products of 52-bit words: every family of kernels has the reference's bits.
#include "engines/cpu/int52.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engines/registry.hpp"
#include "formats/formats.hpp"
#include "lab/random.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::core {
namespace {

constexpr Structure<4> grouped{{Term{1, 1, 2}, Term{1, 0, 1}, Term{0, 1, 1}, Term{0, 0, 0}}, 2, 2, 3, 0, 0};

constexpr std::int64_t least_word = -(std::int64_t{1} << 51);
constexpr std::int64_t most_word = (std::int64_t{1} << 51) - 1;

enum class Fill { random, extremes, least, zero_words };

std::int64_t word_of(Fill fill, std::uint64_t bits, int slice) {
  switch (fill) {
    case Fill::random: break;
    case Fill::extremes: return (bits & 1U) != 0 ? least_word : most_word;
    case Fill::least: return least_word;
    case Fill::zero_words: return slice == 1 ? 0 : static_cast<std::int64_t>(bits) >> 12;
  }
  return static_cast<std::int64_t>(bits) >> 12;
}

// Slices of words, and the sums of both engines. What pads a vector along k is read by nobody.
class Operands {
 public:
  Operands(const Schedule& schedule, std::int64_t m, std::int64_t n, std::int64_t k, Fill fill_a,
           Fill fill_b = Fill::random)
      : schedule_(schedule), m_(m), n_(n), a_(fill(schedule.slices_a, m, k, fill_a, 1, a_memory_)),
        b_(fill(schedule.slices_b, n, k, fill_b, 2, b_memory_)) {}

  std::vector<std::byte> reference() const {
    const Engine& engine = *find_engine("reference");
    return run(engine.scratch_bytes(schedule_, FormatId::int52, a_.k, 2), 2,
               [&](const Multiplication& task) { engine.multiply(task); });
  }

  std::vector<std::byte> by(const Int52Kernels& kernels, int threads) const {
    return run(static_cast<std::size_t>(threads) * int52_worker_bytes(kernels), threads,
               [&](const Multiplication& task) { multiply_int52(task, kernels); });
  }

 private:
  static Slices fill(int count, std::int64_t vectors, std::int64_t k, Fill fill, std::uint64_t seed,
                     std::vector<std::byte>& memory) {
    Slices slices = make_slices(int52, SliceStorage::packed, count, vectors, k);
    memory.assign(slices.bytes(), std::byte{0xab});
    slices.data = memory.data();
    std::uint64_t state = seed << 32;
    for (int s = 0; s < count; ++s) {
      for (std::int64_t v = 0; v < vectors; ++v) {
        for (std::int64_t p = 0; p < k; ++p) {
          slices.vector<std::int64_t>(s, v)[p] = word_of(fill, lab::mix_bits(state++), s);
        }
      }
    }
    return slices;
  }

  // Sums and scratch begin with what does not belong there.
  template <class Multiply>
  std::vector<std::byte> run(std::size_t scratch_bytes, int threads, const Multiply& multiply) const {
    Accumulators sums = make_accumulators(SumType::i128, m_, n_, schedule_.groups);
    std::vector<std::byte> memory(sums.bytes(), std::byte{0xcd});
    std::vector<std::byte> scratch(scratch_bytes, std::byte{0xab});
    sums.data = memory.data();
    multiply(Multiplication{&schedule_, a_, b_, sums, Accumulator::int128, scratch.data(), threads});
    return memory;
  }

  const Schedule& schedule_;
  std::int64_t m_;
  std::int64_t n_;
  std::vector<std::byte> a_memory_, b_memory_;
  Slices a_, b_;
};

void expect_bits_of_reference(const Schedule& schedule, std::int64_t m, std::int64_t n, std::int64_t k,
                              Fill fill_a = Fill::random, Fill fill_b = Fill::random) {
  const Operands operands(schedule, m, n, k, fill_a, fill_b);
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
    for (const std::int64_t n : {1, 3, 4, 5, 65, 129, 256, 258}) expect_bits_of_reference(schedule, m, n, 5);
  }
}

TEST(Int52Products, LengthsHaveTheBitsOfTheReference) {
  const Schedule schedule = make_schedule(single_product);
  for (std::int64_t k = 1; k <= 150; ++k) expect_bits_of_reference(schedule, 7, 6, k);
  for (const std::int64_t k : {255, 256, 257, 1025, 2500}) expect_bits_of_reference(schedule, 18, 5, k);
}

// 4096 products fill the 64-bit sums of the kernels; with the largest words these are full.
TEST(Int52Products, SumsOfTheLargestWordsLeaveTheKernelsInTime) {
  const Schedule schedule = make_schedule(single_product);
  for (const std::int64_t k : {4095, 4096, 4097, 8192, 8193, 12289}) {
    for (const Fill fill_a : {Fill::extremes, Fill::least}) {
      for (const Fill fill_b : {Fill::extremes, Fill::least}) {
        expect_bits_of_reference(schedule, 9, 5, k, fill_a, fill_b);
      }
    }
  }
  if (!test::thorough) return;
  for (const std::int64_t k : {65535, 65536, 65537}) {
    expect_bits_of_reference(schedule, 3, 2, k, Fill::least, Fill::least);
  }
}

TEST(Int52Products, GroupsAndZeroWordsHaveTheBitsOfTheReference) {
  const Schedule schedule = make_schedule(grouped);
  for (const auto& [m, n, k] : {std::tuple{5, 3, 64}, {130, 129, 70}, {260, 3, 33}}) {
    for (const Fill fill_a : {Fill::random, Fill::zero_words}) {
      for (const Fill fill_b : {Fill::random, Fill::zero_words}) {
        expect_bits_of_reference(schedule, m, n, k, fill_a, fill_b);
      }
    }
  }
}

TEST(Int52Products, BitsDoNotDependOnThreads) {
  const Schedule schedule = make_schedule(grouped);
  const Operands operands(schedule, 390, 530, 70, Fill::random);
  for (const Int52Kernels* kernels : int52_families()) {
    const std::vector<std::byte> one = operands.by(*kernels, 1);
    for (int threads = 2; threads <= 8; ++threads) {
      EXPECT_TRUE(operands.by(*kernels, threads) == one) << kernels->name << " " << threads;
    }
  }
}

TEST(Int52Products, AFamilyIsChosenByName) {
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
