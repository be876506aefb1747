// Tests which capability table a device gets, and that the tables are complete.
#include "engines/cuda/arch/architecture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/gemm/kernel_params.hpp"

namespace kintsugi::core::cuda {
namespace {

TEST(Architectures, AreSelectedByComputeCapability) {
  EXPECT_EQ(architecture_of(9, 0).name, "sm90");
  EXPECT_EQ(architecture_of(8, 0).name, "sm80");
  EXPECT_EQ(architecture_of(8, 9).name, "sm80");
  EXPECT_EQ(architecture_of(10, 0).name, "generic") << "only Hopper has wgmma";
  EXPECT_EQ(architecture_of(12, 0).name, "generic");
}

// cuBLAS multiplies on every architecture, and the SIMT kernels are the last candidate on every one.
TEST(Architectures, HaveWhatEveryPlanNeeds) {
  for (const int major : {8, 9, 10}) {
    const Architecture& architecture = architecture_of(major, 0);
    EXPECT_EQ(architecture.fp16_bf16_accumulators.back(), Accumulator::cublas) << architecture.name;
    EXPECT_GT(architecture.int52_rate, 0) << architecture.name;
    for (const auto& tiles : architecture.simt_tiles) EXPECT_FALSE(tiles.empty()) << architecture.name;
  }
}

// Every architecture with product kernels has the costs by which tiles are chosen, and names the image with
// the kernels.
TEST(Architectures, ArchitecturesWithProductKernelsHaveCosts) {
  for (const int major : {8, 9, 10}) {
    const Architecture& architecture = architecture_of(major, 0);
    const bool has_kernels = architecture.int8 != nullptr || !architecture.multi_term.empty();
    EXPECT_EQ(has_kernels, !architecture.gemm_image.empty()) << architecture.name;
    const bool has_costs = std::ranges::any_of(shipped_profiles(), [&](const Profile& profile) {
      return architecture.matches(profile.device.major, profile.device.minor) && architecture.major == major;
    });
    EXPECT_EQ(has_kernels, has_costs) << architecture.name;
    for (const MultiTermKernels& kernels : architecture.multi_term) {
      EXPECT_LE(kernels.tiles.size(), kernels.cluster_kernels.size());
      EXPECT_LE(kernels.small_tiles.size(), kernels.small_kernels.size());
    }
  }
}

}  // namespace
}  // namespace kintsugi::core::cuda
