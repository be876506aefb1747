#include "base/text/nearest_name.hpp"

#include <gtest/gtest.h>

namespace kintsugi::core {
namespace {

const std::vector<std::string> schemes{"fp16", "bf16", "fp16x3", "fp16x3-wide", "ozaki2"};

TEST(NearestName, IsTheOneWithTheFewestEdits) {
  EXPECT_EQ(nearest_name("fp16x4", schemes), "fp16x3");
  EXPECT_EQ(nearest_name("fp16x3wide", schemes), "fp16x3-wide");
  EXPECT_EQ(nearest_name("OZAKI2", schemes), "ozaki2");
  EXPECT_EQ(nearest_name("fp61", schemes), "fp16") << "neighbours exchanged are one edit";
  EXPECT_EQ(nearest_name("gem", {"gemm"}), "gemm") << "one edit of three characters";
}

TEST(NearestName, IsNoneWhereMoreThanAThirdOfTheWordDiffers) {
  EXPECT_EQ(nearest_name("ROOT", {"LOG", "SCHEME"}), std::nullopt);
  EXPECT_EQ(nearest_name("ge", {"gemm"}), std::nullopt);
  EXPECT_EQ(nearest_name("", schemes), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(100000, 'x'), schemes), std::nullopt);
}

TEST(NearestName, IsTheFirstOfSeveralEquallyNear) { EXPECT_EQ(nearest_name("xp16", schemes), "fp16"); }

TEST(NearestName, KnowsWordsOfOtherLibraries) {
  const std::vector<std::string> engines{"auto", "reference", "cpu", "cuda"};
  EXPECT_EQ(nearest_name("gpu", engines), "cuda") << "cpu is one edit away";
  EXPECT_EQ(nearest_name("GPU", engines), "cuda");
  EXPECT_EQ(nearest_name("gpu", {"cpu"}), "cpu") << "a synonym must be accepted here";
  EXPECT_EQ(nearest_name("double", {"fp32", "fp64"}), "fp64");
  EXPECT_EQ(nearest_name("force", {"auto", "emulate", "native"}), "emulate");
}

TEST(AcceptedNames, AreListedAfterTheNearestName) {
  EXPECT_EQ(did_you_mean("fp16x4", schemes), "; did you mean fp16x3?");
  EXPECT_EQ(did_you_mean("abacus", schemes), "");
  EXPECT_EQ(accepted_names("fp16x4", "the schemes are", schemes),
            "; did you mean fp16x3? The schemes are fp16, bf16, fp16x3, fp16x3-wide, ozaki2");
  EXPECT_EQ(accepted_names("abacus", "the schemes are", "fp16, bf16"), "; the schemes are fp16, bf16");
  EXPECT_EQ(accepted_names("fp23", "accepted:", "fp32, fp64, or a tolerance such as 1e-10"),
            "; did you mean fp32? Accepted: fp32, fp64, or a tolerance such as 1e-10");
}

}  // namespace
}  // namespace kintsugi::core
