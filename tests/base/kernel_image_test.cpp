// Tests which devices can run the device code of a build.
#include "base/cuda/cuda_driver.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace kintsugi::core::cuda {

namespace {

bool runs(const std::vector<int>& architectures, int major, int minor) {
  return DeviceBuild{"", architectures}.runs_on(major, minor);
}

TEST(DeviceBuild, PtxOfTheFirstArchitectureRunsOnLaterDevices) {
  EXPECT_TRUE(runs({80, 90, 100, 120}, 8, 0));
  EXPECT_TRUE(runs({80, 90, 100, 120}, 8, 9));
  EXPECT_TRUE(runs({80}, 12, 1));
  EXPECT_FALSE(runs({80, 90}, 7, 5));
}

TEST(DeviceBuild, NothingRunsOnEarlierDevices) {
  EXPECT_FALSE(runs({90}, 8, 9));
  EXPECT_FALSE(runs({86}, 8, 0));
  EXPECT_TRUE(runs({86}, 8, 6));
}

TEST(DeviceBuild, MachineCodeRunsWithinItsGeneration) {
  EXPECT_TRUE(runs({120, 80}, 8, 6));
  EXPECT_FALSE(runs({120, 80}, 9, 0));
}

TEST(DeviceBuild, WithoutDeviceCodeNothingRuns) { EXPECT_FALSE(runs({}, 9, 0)); }

TEST(HasImage, FindsTheExactName) {
  const KernelImage images[] = {{"multi_term_sm90a", nullptr}};
  EXPECT_TRUE(has_image(images, "multi_term_sm90a"));
  EXPECT_FALSE(has_image(images, "terms"));
  EXPECT_FALSE(has_image({}, "multi_term_sm90a"));
}

}  // namespace

}  // namespace kintsugi::core::cuda
