// Tests the lengths of k-blocks and of segments of k.
#include "schedule/schedule.hpp"

#include <gtest/gtest.h>

namespace kintsugi::core {
namespace {

constexpr Structure<1> structure{.terms = {Term{}},
                                 .slices_a = 1,
                                 .slices_b = 1,
                                 .groups = 1,
                                 .k_block = 64,
                                 .k_step = 0,
                                 .k_segment = 8192,
                                 .most_halvings = 2};

struct Lengths {
  std::int64_t block, segment;
  friend bool operator==(const Lengths&, const Lengths&) = default;
};

Lengths lengths(double elements, std::int64_t k, int most_halvings = 2) {
  Schedule schedule = make_schedule(structure);
  schedule.most_halvings = most_halvings;
  schedule = schedule.shortened(elements, k);
  return {schedule.block_length(k), schedule.segment_length(k)};
}

TEST(Schedule, HasShorterKBlocksAndSegmentsWhereCHasFewElements) {
  EXPECT_EQ(lengths(0x1p22, 4096), (Lengths{64, 4096}));
  EXPECT_EQ(lengths(0x1p22, 16384), (Lengths{64, 8192}));
  EXPECT_EQ(lengths(0x1p22, 129), (Lengths{64, 129}));
  EXPECT_EQ(lengths(0x1p22 - 1, 4096), (Lengths{32, 2048}));
  EXPECT_EQ(lengths(0x1p20, 4096), (Lengths{32, 2048}));
  EXPECT_EQ(lengths(0x1p20 - 1, 4096), (Lengths{16, 256}));
  EXPECT_EQ(lengths(0x1p20 - 1, 1 << 16), (Lengths{16, 4096})) << "at most 16 segments";
  EXPECT_EQ(lengths(1, 10), (Lengths{10, 10}));
}

TEST(Schedule, HasShorterKBlocksWhereKIsShort) {
  EXPECT_EQ(lengths(0x1p40, 128), (Lengths{32, 128}));
  EXPECT_EQ(lengths(0x1p40, 64), (Lengths{32, 64}));
}

TEST(Schedule, HalvesAtMostAsOftenAsAllowed) {
  EXPECT_EQ(lengths(1, 4096, 1), (Lengths{32, 2048}));
  EXPECT_EQ(lengths(1, 4096, 0), (Lengths{64, 4096}));
}

TEST(Schedule, SegmentsDoNotDependOnThePaddingOfK) {
  for (const double elements : {1.0, 0x1p20, 0x1p22}) {
    for (std::int64_t k = 1; k < 40000; k += 37) {
      const std::int64_t padded = round_up(k, 64);
      const Schedule schedule = make_schedule(structure).shortened(elements, k);
      if (schedule.segment_length(k) == k) continue;
      EXPECT_EQ(schedule.segment_length(k), schedule.segment_length(padded)) << k;
      EXPECT_EQ(schedule.segment_length(k) % 64, 0) << k;
    }
  }
}

}  // namespace
}  // namespace kintsugi::core
