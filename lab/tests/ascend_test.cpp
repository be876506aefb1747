// Tests the simulated Ascend 910A: the paper's equations by hand, bits against the library's scheme h2sgemm,
// the cube's models, and times of cases that can be counted by hand.
#include "lab/numerics/ascend.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lab/numerics/npu_sums.hpp"
#include "tests/support/c_objects.hpp"

namespace kintsugi::lab::ascend {
namespace {

std::vector<float> random_matrix(std::int64_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(static_cast<std::size_t>(size));
  for (float& x : values) x = uniform(random);
  return values;
}

std::vector<float> by_the_library(const Problem& problem, const std::vector<float>& a,
                                  const std::vector<float>& b, int sb) {
  test::GemmData data(test::GemmCase{.m = problem.m,
                                     .n = problem.n,
                                     .k = problem.k,
                                     .scheme = "h2sgemm:sb=" + std::to_string(sb),
                                     .engine = "reference",
                                     .accumulator = "fp32"});
  for (std::int64_t i = 0; i < problem.m; ++i)
    for (std::int64_t p = 0; p < problem.k; ++p)
      data.a()(i, p) = a[static_cast<std::size_t>(i * problem.k + p)];
  for (std::int64_t p = 0; p < problem.k; ++p)
    for (std::int64_t j = 0; j < problem.n; ++j)
      data.b()(p, j) = b[static_cast<std::size_t>(p * problem.n + j)];
  data.run_well();
  std::vector<float> c;
  for (std::int64_t i = 0; i < problem.m; ++i)
    for (std::int64_t j = 0; j < problem.n; ++j) c.push_back(data.c()(i, j));
  return c;
}

TEST(Ascend, EquationsEqualValuesByHand) {
  EXPECT_EQ(fused_blocks({176, 64, 176}), 44);
  EXPECT_EQ(fused_blocks({176, 64, 176}, 256 * 1024), 21);
  EXPECT_DOUBLE_EQ(fused_share({176, 64, 176}), 44.0 * 176 * 64 / (512 * 1024));
  EXPECT_NEAR(optimal_height(1), 90.51, 0.005);
  EXPECT_NEAR(optimal_height(0.92), 86.81, 0.005);
  EXPECT_TRUE(feasible({176, 64, 176}));
  EXPECT_TRUE(feasible({256, 64, 160}));
  for (const Blocks& blocks : {Blocks{272, 64, 16}, {16, 64, 272}, {240, 16, 192}, {176, 64, 8}, {0, 16, 16}})
    EXPECT_FALSE(feasible(blocks)) << blocks.m << " " << blocks.k << " " << blocks.n;
}

// Sizes beside whole blocks, all bufferings, several columns, block rows and parts of C.
TEST(Ascend, BitsEqualTheLibrarysWhereKIsOneGroup) {
  for (const Buffering buffering : {Buffering::single, Buffering::overlapped, Buffering::in_order}) {
    for (const int sb : {0, 12}) {
      const Problem problem{.m = 100, .n = 150, .k = 333, .blocks = {64, 32, 48}, .buffering = buffering};
      const auto a = random_matrix(problem.m * problem.k, 1), b = random_matrix(problem.k * problem.n, 2);
      Components components;
      simulate(problem, a, b, sb, Sum::sequential, components);
      EXPECT_EQ(combine(components, sb, false), by_the_library(problem, a, b, sb));
    }
  }
}

TEST(Ascend, BitsEqualTheLibrarysWithThePapersBlocks) {
  const Problem problem{.m = 180, .n = 360, .k = 64 * 44, .blocks = {176, 64, 176}};
  const auto a = random_matrix(problem.m * problem.k, 3), b = random_matrix(problem.k * problem.n, 4);
  Components components;
  simulate(problem, a, b, 12, Sum::sequential, components);
  EXPECT_EQ(combine(components, 12, false), by_the_library(problem, a, b, 12));
}

// Several groups: sums of groups are added in FP32, in order.
TEST(Ascend, GroupsAreAddedInFp32) {
  const Problem problem{.m = 16, .n = 32, .k = 160, .blocks = {16, 32, 16}, .max_fused = 2};
  const auto a = random_matrix(problem.m * problem.k, 5), b = random_matrix(problem.k * problem.n, 6);
  Components components;
  simulate(problem, a, b, 12, Sum::sequential, components);
  for (std::int64_t i = 0; i < problem.m; ++i) {
    for (std::int64_t j = 0; j < problem.n; ++j) {
      float sum = 0, group = 0;
      for (std::int64_t p = 0; p < problem.k; ++p) {
        group += to_half(a[static_cast<std::size_t>(i * problem.k + p)]) *
                 to_half(b[static_cast<std::size_t>(p * problem.n + j)]);
        if ((p + 1) % 64 == 0 || p + 1 == problem.k) sum += group, group = 0;
      }
      ASSERT_EQ(components[2][static_cast<std::size_t>(i * problem.n + j)], sum) << i << " " << j;
    }
  }
}

// Operations that do not wait for the readers of their destination overwrite tiles that are still needed.
TEST(Ascend, MissingWaitsSpoilTheResult) {
  const Problem problem{.m = 64, .n = 96, .k = 320, .blocks = {64, 32, 48}};
  const auto a = random_matrix(problem.m * problem.k, 7), b = random_matrix(problem.k * problem.n, 8);
  Components right, wrong;
  simulate(problem, a, b, 12, Sum::sequential, right);
  simulate(problem, a, b, 12, Sum::sequential, wrong, true);
  EXPECT_NE(right, wrong);
}

// One block of each, high slices alone (the third term): B follows A into UB, and C follows B, while the cube
// works.
TEST(Ascend, TimesOfOneBlockAreCountedByHand) {
  const Core& core = ascend_910a;
  const Problem problem{.m = 16, .n = 16, .k = 16, .blocks = {16, 16, 16}, .buffering = Buffering::single};
  const double size = 16 * 16;
  const double from_memory = 4 * size / core.memory, from_l2 = 4 * size / core.l2_to_ub;
  const double vector = size / static_cast<double>(core.vector_lanes);
  const Times times = simulate(problem);
  // A is loaded and split, B and C are loaded, C is added and stored.
  const double by_hand = from_memory + vector + from_l2 + from_memory + vector + from_memory;
  EXPECT_NEAR(times.of_terms[2], by_hand, 1e-9);
  EXPECT_DOUBLE_EQ(times.busy[static_cast<std::size_t>(Pipe::cube)], 3);
  // The residual of A, four vector operations more, is on that path; that of B is beside C's load.
  EXPECT_NEAR(times.of_terms[0], by_hand + 4 * vector, 1e-9);
}

// The times alone continue the last columns; with tiles every column is simulated.
TEST(Ascend, TimesWithoutTilesEqualThoseWithTiles) {
  for (const Buffering buffering : {Buffering::single, Buffering::overlapped, Buffering::in_order}) {
    const Problem problem{
        .m = 32, .n = 32 * 77, .k = 96, .blocks = {32, 16, 32}, .buffering = buffering, .max_fused = 4};
    Components components;
    const auto a = random_matrix(problem.m * problem.k, 9), b = random_matrix(problem.k * problem.n, 10);
    const Times all = simulate(problem, a, b, 12, Sum::sequential, components);
    EXPECT_NEAR(simulate(problem).cycles, all.cycles, 0.01 * all.cycles);
  }
}

TEST(Ascend, CubeIsBusyForAllProductsAndTheBufferGains) {
  Problem problem{.m = 5632, .n = 1760, .k = 2816, .blocks = {176, 64, 176}};
  double rates[2];
  int turn = 0;
  for (const Buffering buffering : {Buffering::single, Buffering::overlapped}) {
    problem.buffering = buffering;
    const Times times = simulate(problem);
    EXPECT_DOUBLE_EQ(times.busy[0], 3.0 * 5632 * 1760 * 2816 / 32 / 4096);
    for (const double busy : times.busy) EXPECT_LE(busy, times.cycles);
    rates[turn++] = times.rate(problem);
  }
  EXPECT_GT(rates[1], rates[0]);
  EXPECT_LT(rates[1], 2 * 4096 * 32 * 1e9 / 3);
}

TEST(Ascend, SumsOfTheCubeDiffer) {
  float a[16] = {}, b[16];
  std::fill(std::begin(b), std::end(b), 1.0F);
  // 1 + 15 times 2^-25: sequential sums lose each, one rounding keeps 2^-21, a tree loses what meets the 1.
  for (int q = 1; q < 16; ++q) a[q] = 0x1p-24F;
  EXPECT_EQ(add_products(Sum::sequential, 1, a, b), 1);
  EXPECT_EQ(add_products(Sum::once, 1, a, b), 1 + 0x1p-20F);
  EXPECT_EQ(add_products(Sum::tree, 1, a, b), 1 + 0x1p-20F);
  a[0] = 1;
  EXPECT_EQ(add_products(Sum::once, -1, a, b), 15 * 0x1p-24F);
  EXPECT_EQ(add_products(Sum::tree, -1, a, b), 14 * 0x1p-24F);
  EXPECT_EQ(add_products(Sum::sequential, -1, a, b), 15 * 0x1p-24F);
}

TEST(Ascend, HalfRoundsToNearestEven) {
  EXPECT_EQ(to_half(1 + 0x1p-11F), 1);
  EXPECT_EQ(to_half(1 + 3 * 0x1p-11F), 1 + 0x1p-9F);
  EXPECT_EQ(to_half(-0x1p-25F), 0);
  EXPECT_EQ(to_half(3 * 0x1p-26F), 0x1p-24F);
  EXPECT_EQ(to_half(65519), 65504);
  EXPECT_TRUE(std::isinf(to_half(65520)));
}

// The products of npu_sums.hpp have the bits of the simulation that moves tiles: groups of 44 blocks of 64.
TEST(NpuSums, TermWiseBitsEqualTheSimulations) {
  for (const std::int64_t k : {std::int64_t{320}, std::int64_t{64 * 44 + 64}}) {
    const Problem problem{.m = 20, .n = 24, .k = k, .blocks = {176, 64, 176}};
    const auto a = random_matrix(problem.m * k, 1), b = random_matrix(k * problem.n, 2);
    for (const int sb : {0, 12}) {
      const npu::SplitProduct split({problem.m, problem.n, k, a, b}, sb);
      for (const auto& [order, sum] : {std::pair(npu::Order::sequential, Sum::sequential),
                                       std::pair(npu::Order::sixteen_at_once, Sum::once)}) {
        Components components;
        simulate(problem, a, b, sb, sum, components);
        EXPECT_EQ(split.term_wise(order), combine(components, sb, true));
      }
    }
  }
}

// A product in each block of 64 and sums that FP32 holds exactly have no order.
TEST(NpuSums, OrdersAgreeWhereSumsAreExact) {
  const std::int64_t k = 256;
  std::vector<float> a(k), b(k);
  for (std::size_t p = 0; p < a.size(); p += 64) a[p] = 1 + 0x1p-12F, b[p] = 3;
  const npu::SplitProduct split({1, 1, k, a, b}, 12);
  const std::vector<float> exact{12 + 12 * 0x1p-12F};
  for (const auto order : {npu::Order::sequential, npu::Order::sixteen_at_once, npu::Order::blocks_of_64}) {
    EXPECT_EQ(split.term_wise(order), exact);
    for (const std::int64_t every : {16, 64}) EXPECT_EQ(split.element_wise(order, every), exact);
    EXPECT_EQ(split.high_alone(order), std::vector<float>{12});
  }
}

}  // namespace
}  // namespace kintsugi::lab::ascend
