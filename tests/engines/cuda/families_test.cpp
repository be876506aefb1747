// Tests which table a device gets, and that the tables are complete.
#include "engines/cuda/arch/family.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/gemm/kernel_params.hpp"

namespace kintsugi::core::cuda {
namespace {

TEST(Families, AreSelectedByComputeCapability) {
  EXPECT_EQ(family_of(9, 0).name, "hopper");
  EXPECT_EQ(family_of(8, 0).name, "generic");
  EXPECT_EQ(family_of(10, 0).name, "generic") << "only Hopper has wgmma";
  EXPECT_EQ(family_of(12, 0).name, "generic");
}

// cuBLAS multiplies on every device, and the SIMT kernels are the last candidate on every one.
TEST(Families, HaveWhatEveryPlanNeeds) {
  for (const int major : {8, 9, 10}) {
    const Family& family = family_of(major, 0);
    EXPECT_EQ(family.fp16_bf16_accumulators.back(), Accumulator::cublas) << family.name;
    EXPECT_GT(family.int52_rate, 0) << family.name;
    for (const auto& tiles : family.simt_tiles) EXPECT_FALSE(tiles.empty()) << family.name;
  }
}

// A family with product kernels names an image with them, Every tile has a kernel, and costs have room
// for all tiles.
TEST(Families, HaveKernelsForTheirTilesAndCosts) {
  for (const int major : {8, 9, 10}) {
    const Family& family = family_of(major, 0);
    const bool has_kernels =
        family.int8 != nullptr || !family.multi_term.empty() || family.dmma != Family{}.dmma;
    EXPECT_EQ(has_kernels, !family.gemm_image.empty()) << family.name;
    EXPECT_EQ(family.weighted_tiles.empty(), family.failing_tiles == nullptr);
    EXPECT_LE(family.multi_term.size(), max_structures);
    for (const MultiTermKernels& kernels : family.multi_term) {
      EXPECT_LE(kernels.tiles.size(), max_tiles);
      EXPECT_LE(kernels.small_tiles.size(), max_tiles);
      EXPECT_EQ(kernels.tiles.size(), kernels.kernels.size());
      EXPECT_EQ(kernels.small_tiles.size(), kernels.small_kernels.size());
      EXPECT_LE(kernels.segmented_kernels.size(), kernels.small_kernels.size());
    }
    for (const DmmaKernels* kernels : family.dmma) {
      if (kernels == nullptr) continue;
      EXPECT_LE(kernels->tiles.size(), max_tiles);
      EXPECT_EQ(kernels->tiles.size(), kernels->along_k.size());
    }
  }
}

}  // namespace
}  // namespace kintsugi::core::cuda
