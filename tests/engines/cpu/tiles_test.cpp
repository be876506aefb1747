// Tests that every family of int8 kernels multiplies MixPert's tiles with the bits of the definition.
#include "engines/cpu/products.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "engines/tile_element.hpp"
#include "schemes/program.hpp"
#include "split/ranges.hpp"
#include "split/split.hpp"

namespace kintsugi::core {
namespace {

// Slices of a random operand of vectors x k elements. Tiles have different exponents; some are zero, and some
// have outliers and fail Eq. 9.
struct RandomOperand {
  RandomOperand(const SplitRule& rule, std::int64_t vectors, std::int64_t k, std::uint32_t seed)
      : elements(static_cast<std::size_t>(vectors * k)), ranges(static_cast<std::size_t>(vectors)),
        slices(make_slices(rule, SliceStorage::packed, vectors, k)), memory(slices.bytes(), std::byte{0x5a}) {
    std::mt19937 random(seed);
    for (std::int64_t v = 0; v < vectors; ++v) {
      for (std::int64_t p = 0; p < k; ++p) {
        const std::int64_t tile = v / 16 + p / 32 + 1;
        const int exponent = static_cast<int>(tile * 17 % 40) - 20;
        const auto integer = static_cast<float>(static_cast<std::int32_t>(random()));
        const bool is_outlier = random() % 4000 == 0;
        elements[v * k + p] = tile % 5 == 4 ? 0 : std::ldexp(integer, exponent + (is_outlier ? 20 : 0));
      }
    }
    const MatrixView<const float> view{elements.data(), vectors, k, k, 1};
    find_ranges(view, rule, std::span(ranges), 1);
    slices.place(memory.data());
    split_operand(view, rule, std::span<const VectorRange>(ranges), slices, 1);
  }

  std::vector<float> elements;
  std::vector<VectorRange> ranges;
  Slices slices;
  std::vector<std::byte> memory;
};

struct Product {
  Product(const std::string& scheme, std::int64_t rows, std::int64_t columns, std::int64_t k)
      : program(fitted_program(*find_scheme(scheme), OperandType::f32, k)), m(rows), n(columns),
        a(program.split_a, rows, k, 1), b(program.split_b, columns, k, 2) {}

  template <class Multiply>
  std::vector<float> by(std::size_t scratch_bytes, int threads, const Multiply& multiply) const {
    std::vector<float> sums(static_cast<std::size_t>(2 * m * n), NAN);
    std::vector<std::byte> scratch(scratch_bytes * static_cast<std::size_t>(threads));
    Multiplication task{&program.schedule, a.slices, b.slices, make_accumulators(SumType::f32, m, n, 2)};
    task.sums.data = reinterpret_cast<std::byte*>(sums.data());
    task.scratch = scratch.data();
    task.threads = threads;
    multiply(task);
    for (std::int64_t e = 0; e < m * n; ++e) EXPECT_TRUE(std::isnan(sums[m * n + e])) << "sum 1 was written";
    sums.resize(static_cast<std::size_t>(m * n));
    return sums;
  }
  std::vector<float> definition() const {
    return by(0, 1, [](const Multiplication& task) { multiply_tiles_by_elements(task); });
  }
  std::vector<float> by(const Int8Kernels& kernels, int threads) const {
    return by(tiles_worker_bytes(kernels), threads,
              [&](const Multiplication& task) { multiply_tiles(task, kernels); });
  }

  Program program;
  std::int64_t m;
  std::int64_t n;
  RandomOperand a;
  RandomOperand b;
};

void expect_definition(const std::string& scheme, std::int64_t m, std::int64_t n, std::int64_t k) {
  const Product product(scheme, m, n, k);
  const std::vector<float> expected = product.definition();
  // Up to k = 2 all tiles of these operands fail Eq. 9, and their segments are zero.
  EXPECT_EQ(std::ranges::any_of(expected, [](float x) { return x != 0; }), k > 2);
  for (const Int8Kernels* kernels : int8_families()) {
    EXPECT_EQ(product.by(*kernels, 1), expected)
        << kernels->name << " " << scheme << " " << m << " x " << n << " x " << k;
  }
}

TEST(TileProducts, FamiliesHaveTheBitsOfTheDefinition) {
  for (const char* scheme : {"mixpert-1", "mixpert-2", "mixpert-3", "mixpert-4", "mixpert-full"}) {
    for (const char* parameters : {"", ":tile=64", ":tile=128", ":tile=256", ":exponent=pair"})
      expect_definition(std::string(scheme) + parameters, 33, 21, 600);
  }
}

TEST(TileProducts, EdgesHaveTheBitsOfTheDefinition) {
  for (const std::int64_t m : {1, 15, 16, 17, 129, 260}) expect_definition("mixpert-4", m, 9, 70);
  for (const std::int64_t n : {1, 7, 8, 65, 130, 257}) expect_definition("mixpert-4", 18, n, 70);
  for (const std::int64_t k : {1, 2, 31, 32, 33, 63, 65, 511, 513}) expect_definition("mixpert-4", 20, 10, k);
}

TEST(TileProducts, BitsDoNotDependOnThreads) {
  const Product product("mixpert-4", 300, 270, 40);
  for (const Int8Kernels* kernels : int8_families())
    EXPECT_EQ(product.by(*kernels, 3), product.by(*kernels, 1)) << kernels->name;
}

}  // namespace
}  // namespace kintsugi::core
