// Loops over blocks of C.
#include "execute/blocks.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace kintsugi::core {
namespace {

TEST(Blocks, CoverEveryElementOnceInColumnMajorOrder) {
  for (const std::int64_t m : {1, 7, 8, 20}) {
    for (const std::int64_t n : {1, 3, 6, 17}) {
      std::vector<int> visits(static_cast<std::size_t>(m * n));
      std::int64_t column = 0;
      std::int64_t row = -1;
      for_each_block({8, 3}, m, n, [&](const ResultBlock& block) {
        EXPECT_LE(block.rows, 8);
        EXPECT_LE(block.columns, 3);
        EXPECT_TRUE(block.column == column ? block.row > row : block.column > column && block.row == 0);
        column = block.column;
        row = block.row;
        for (std::int64_t j = 0; j < block.columns; ++j) {
          for (std::int64_t i = 0; i < block.rows; ++i)
            ++visits[static_cast<std::size_t>(block.row + i + (block.column + j) * m)];
        }
      });
      EXPECT_EQ(visits, std::vector<int>(visits.size(), 1)) << m << " x " << n;
    }
  }
}

// Columns of B are split once for each column of blocks; rows of A once if one block has them all, else for
// every block.
TEST(Blocks, SplitAnOperandOnlyWhereItsVectorsBegin) {
  const auto splits = [](const Blocking& size, std::int64_t m, std::int64_t n) {
    std::pair<int, int> counts;
    for_each_block(size, m, n, [&](const ResultBlock& block) {
      counts.first += needs_split_of_rows(block, size, m) ? 1 : 0;
      counts.second += needs_split_of_columns(block) ? 1 : 0;
    });
    return counts;
  };
  EXPECT_EQ(splits({8, 8}, 8, 20), std::pair(1, 3));
  EXPECT_EQ(splits({8, 8}, 9, 20), std::pair(6, 3));
  EXPECT_EQ(splits({8, 8}, 8, 8), std::pair(1, 1));
}

TEST(Blocks, ForEachIntervalCutsALengthAndSkipsAnEmptyOne) {
  int count = 0;
  for_each_interval({5, 0}, 3, [&](const Interval&) { ++count; });
  EXPECT_EQ(count, 0);
  for_each_interval({5, 7}, 3, [&](const Interval& interval) {
    EXPECT_EQ(interval.first, 5 + 3 * count++);
    EXPECT_EQ(interval.count, count == 3 ? 1 : 3);
  });
  EXPECT_EQ(count, 3);
}

}  // namespace
}  // namespace kintsugi::core
