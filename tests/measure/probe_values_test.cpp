// Tests the operands of the probes, their swizzle, and which sums a thread's fragments hold.
#include "tools/measure/probes/probe_values.hpp"

#include <gtest/gtest.h>

#include <set>

namespace kintsugi::measure {
namespace {

TEST(ProbeValues, ElementsFillTheirRange) {
  std::set<int> values;
  for (int vector = 0; vector < 256; ++vector) {
    for (int k = 0; k < 128; ++k) values.insert(probe_element(ProbeSide::a, vector, k, probe_limit_int8));
  }
  EXPECT_EQ(values.size(), 2U * probe_limit_int8 + 1);
  EXPECT_EQ(*values.begin(), -probe_limit_int8);
  EXPECT_EQ(*values.rbegin(), probe_limit_int8);
}

TEST(ProbeValues, ElementsDependOnSideVectorAndInnerIndex) {
  const int a = probe_element(ProbeSide::a, 1, 2, probe_limit_11_bits);
  EXPECT_NE(a, probe_element(ProbeSide::b, 1, 2, probe_limit_11_bits));
  EXPECT_NE(a, probe_element(ProbeSide::a, 2, 2, probe_limit_11_bits));
  EXPECT_NE(a, probe_element(ProbeSide::a, 1, 3, probe_limit_11_bits));
}

TEST(ProbeValues, TheSwizzleIsAPermutationOfTheUnitsOfARow) {
  std::set<int> offsets;
  for (int row = 0; row < 16; ++row) {
    for (int byte = 0; byte < wgmma_row_bytes; ++byte) {
      const int offset = swizzled_offset(row, byte);
      EXPECT_EQ(offset / wgmma_row_bytes, row);
      EXPECT_EQ(offset % 16, byte % 16);
      offsets.insert(offset);
    }
  }
  EXPECT_EQ(offsets.size(), 16U * wgmma_row_bytes);
  EXPECT_EQ(swizzled_offset(0, 48), 48);
  EXPECT_EQ(swizzled_offset(5, 0), 5 * wgmma_row_bytes + 5 * 16);
}

TEST(ProbeValues, FragmentsCoverEverySumOnce) {
  std::set<int> sums;
  for (int thread = 0; thread < 128; ++thread) {
    for (int i = 0; i < wgmma_m * wgmma_n / 128; ++i)
      sums.insert(fragment_row(thread, i) * wgmma_n + fragment_column(thread, i));
  }
  EXPECT_EQ(sums.size(), static_cast<std::size_t>(wgmma_m * wgmma_n));
  EXPECT_EQ(*sums.rbegin(), wgmma_m * wgmma_n - 1);
}

// mma.sync computes 16 x 8 sums in a warp, four per thread.
TEST(ProbeValues, FragmentsOfAWarpCoverItsTileOnce) {
  std::set<int> sums;
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) sums.insert(fragment_row(lane, i) * 8 + fragment_column(lane, i));
  }
  EXPECT_EQ(sums.size(), 16U * 8);
  EXPECT_EQ(*sums.rbegin(), 16 * 8 - 1);
}

}  // namespace
}  // namespace kintsugi::measure
