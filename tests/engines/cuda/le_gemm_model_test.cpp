// Tests LE-GEMM's model: its equations by hand, and the tiles of the paper's table 2.
#include "engines/cuda/arch/le_gemm_model.hpp"

#include <gtest/gtest.h>

#include "engines/cuda/arch/cards.hpp"

namespace kintsugi::core::cuda::le_gemm {
namespace {

// The devices of the paper. Registers: 256 KiB and 255 of a thread on the A800 (CUDA C++ Programming Guide),
// 512 KiB and 512 of a thread on the MI210 (AMD Instinct MI200 Instruction Set Architecture), whose 104 units
// have 64 KiB of shared memory (AMD CDNA 2 Architecture white paper). f_k is that of table 2.
constexpr Device mi210{.units = 104,
                       .wavefront = 64,
                       .unit_threads = 2048,
                       .unit_registers = 131072,
                       .thread_registers = 512,
                       .shared_bytes = 64 << 10,
                       .fragment_depth = 16};

Device a800() {
  const Card card = card_of({.name = "NVIDIA A800-SXM4-80GB", .major = 8, .minor = 0, .sm_count = 108});
  return {.units = card.traits.sm_count,
          .wavefront = 32,
          .unit_threads = 2048,
          .unit_registers = 65536,
          .thread_registers = 255,
          .shared_bytes = card.shared_bytes,
          .fragment_depth = 16};
}

bool is(const std::optional<Tile>& tile, std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  return tile && tile->rows == rows && tile->columns == columns && tile->depth == depth;
}

TEST(LeGemmModel, HasThePapersEquations) {
  const Tile tile{128, 256, 32, 256};
  EXPECT_EQ(thread_parallelism(1000, 1000, tile, a800()), 8 * 4 * 256) << "Eq. 12: C has 8 x 4 workgroups";
  EXPECT_EQ(thread_parallelism(65536, 65536, tile, a800()), 108 * 2048) << "the device holds no more";
  EXPECT_EQ(memory_bytes(tile), 2 * 2 * (128 * 32 + 32 * 256)) << "Eq. 13";
  EXPECT_EQ(operations(tile), 3.0 * 2 * 128 * 256 * 32) << "Eq. 14";
  EXPECT_EQ(intensity(tile), 3.0 * (128 * 256) / (2 * (128 + 256))) << "Eq. 15, simplified as in the paper";
  EXPECT_EQ(loaded_elements(tile), (128 * 256 + 128 * 32 + 32 * 256) / 256.0) << "Eq. 16";
  EXPECT_EQ(computed_elements(tile), 128 * 256 / 256.0) << "Eq. 17";
  EXPECT_EQ(memory_bytes(tile, 3), 1.5 * memory_bytes(tile));
  EXPECT_EQ(operations(tile, 6), 2 * operations(tile));
}

// The paper does not say for which sizes table 2 holds. Its products have up to some 10^4 rows and columns.
TEST(LeGemmModel, ReproducesTable2) {
  for (const std::int64_t n : {8192, 10240, 16384}) {
    EXPECT_TRUE(is(best_tile(n, n, mi210), 128, 128, 32)) << n;
    EXPECT_TRUE(is(best_tile(n, n, a800()), 128, 256, 32)) << n;
  }
}

// Half of table 2's T_K, one fragment, is allowed too (section 4.3). Then the MI210, whose units have twice
// as many registers as the A800's, gets a larger tile than it.
TEST(LeGemmModel, DoesNotReproduceTable2WithOneFragment) {
  EXPECT_TRUE(is(best_tile(8192, 8192, mi210, 1), 256, 256, 16));
  EXPECT_TRUE(is(best_tile(8192, 8192, a800(), 1), 128, 256, 32));
}

TEST(LeGemmModel, TakesSmallTilesForASmallC) {
  const auto tile = best_tile(256, 256, a800());
  ASSERT_TRUE(tile);
  EXPECT_LT(tile->rows * tile->columns, 128 * 256);
}

TEST(LeGemmModel, FindsNoTileWithoutSharedMemory) {
  Device device = mi210;
  device.shared_bytes = 1024;
  EXPECT_FALSE(best_tile(8192, 8192, device));
}

}  // namespace
}  // namespace kintsugi::core::cuda::le_gemm
