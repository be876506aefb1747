// Tests which table a device gets, and that the tables are complete.
#include "engines/cuda/arch/family.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "base/text/format_text.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/gemm/kernel_params.hpp"
#include "engines/cuda/gemm/multi_term_tiles.hpp"

namespace kintsugi::core::cuda {
namespace {

TEST(Families, AreSelectedByComputeCapability) {
  EXPECT_EQ(family_of(9, 0).name, "hopper");
  EXPECT_EQ(family_of(8, 0).name, "sm80");
  EXPECT_EQ(family_of(8, 6).name, "sm86");
  EXPECT_EQ(family_of(10, 0).name, "sm86") << "only Hopper has wgmma";
  EXPECT_EQ(family_of(12, 0).name, "sm86");
}

// The setting `arch` names families; the variable's value is read once, so that a test cannot change it.
TEST(Families, AreNamedByTheSetting) {
  EXPECT_FALSE(is_family_forced());
  EXPECT_EQ(find_family("auto"), nullptr);
  const std::string accepted(find_setting("arch").accepted);
  for (const std::string name : {"generic", "sm80", "sm86"}) {
    EXPECT_NE(find_family(name), nullptr) << name;
    EXPECT_NE(accepted.find(name), std::string::npos) << name;
  }
}

// Stages of mma tiles fit the shared memory of a thread block, and of an SM that holds two of them.
TEST(Families, MmaTilesFitSharedMemory) {
  for (const char* name : {"sm80", "sm86"}) {
    const Family& family = *find_family(name);
    const SharedBytes shared{family.max_shared_bytes, family.max_shared_bytes + reserved_bytes_of_block};
    for (const MultiTermKernels& kernels : family.multi_term) {
      const int slices = kernels.terms.size() == 3 ? 2 : 3;
      for (std::size_t i = 0; i < kernels.mma_tiles.size(); ++i) {
        const MmaTile& tile = kernels.mma_tiles[i];
        for (const std::int64_t k : {64, 128, 4096}) {
          for (const std::int64_t n : {64, 8192}) {
            const MmaTileVariant found =
                choose_mma_tile(tile, i, {}, {n, n, k, 1}, slices, 1, 108, shared, MultiTermCosts{});
            SCOPED_TRACE(fmt::format("{} {} tile {} n {} k {}", name, kernels.name, i, n, k));
            ASSERT_GT(found.stages, 0);
            EXPECT_LE(found.stages, slices * (k / term_block + 1) - 1) << "loaded beyond the next tile";
            const std::int64_t bytes = std::int64_t{found.stages} * tile.stage_bytes() + mma_static_bytes;
            EXPECT_LE(bytes, shared.of_block);
            const int blocks = found.schedule.clusters > 108 ? 2 : 1;
            EXPECT_LE(blocks * (bytes + reserved_bytes_of_block), shared.of_sm);
          }
        }
      }
    }
  }
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
      EXPECT_EQ(kernels.mma_tiles.size(), kernels.mma_kernels.size());
      EXPECT_NE(kernels.tiles.empty(), kernels.mma_tiles.empty());
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
