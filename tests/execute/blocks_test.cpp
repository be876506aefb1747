// Loops over blocks of C.
#include "execute/blocks.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace kintsugi::core {
namespace {

TEST(Blocks, CoverEveryElementOnceByColumnsOfBlocks) {
  for (const std::int64_t m : {1, 7, 8, 20}) {
    for (const std::int64_t n : {1, 3, 6, 17}) {
      std::vector<int> visits(static_cast<std::size_t>(m * n));
      std::int64_t column = 0;
      for_each_block({8, 3}, m, n, [&](const ResultBlock& block) {
        EXPECT_LE(block.rows, 8);
        EXPECT_LE(block.columns, 3);
        EXPECT_GE(block.column, column);
        column = block.column;
        for (std::int64_t j = 0; j < block.columns; ++j) {
          for (std::int64_t i = 0; i < block.rows; ++i)
            ++visits[static_cast<std::size_t>(block.row + i + (block.column + j) * m)];
        }
      });
      EXPECT_EQ(visits, std::vector<int>(visits.size(), 1)) << m << " x " << n;
    }
  }
}

TEST(Blocks, GoDownwardsAndUpwardsInTurn) {
  std::vector<std::int64_t> rows;
  for_each_block({8, 8}, 20, 24, [&](const ResultBlock& block) { rows.push_back(block.row); });
  EXPECT_EQ(rows, (std::vector<std::int64_t>{0, 8, 16, 16, 8, 0, 0, 8, 16}));
}

// Blocks of random sizes have the slices of their own rows and columns, if those are kept until the next
// split.
TEST(Blocks, SplitAnOperandWhereItsVectorsBegin) {
  std::mt19937 random(5);
  const auto draw = [&](std::int64_t most) { return 1 + static_cast<std::int64_t>(random() % most); };
  for (int number = 0; number < 2000; ++number) {
    const Blocking size{draw(9), draw(9)};
    const std::int64_t m = draw(40), n = draw(40);
    Interval rows, columns;
    std::int64_t split_rows = 0, split_columns = 0;
    SplitVectors of_rows, of_columns;
    for_each_block(size, m, n, [&](const ResultBlock& block) {
      if (of_rows.replace(block.row)) {
        rows = {block.row, block.rows};
        split_rows += block.rows;
      }
      if (of_columns.replace(block.column)) {
        columns = {block.column, block.columns};
        split_columns += block.columns;
      }
      ASSERT_TRUE(rows.first == block.row && rows.count == block.rows);
      ASSERT_TRUE(columns.first == block.column && columns.count == block.columns);
    });
    EXPECT_EQ(split_columns, n);
    EXPECT_LE(split_rows, divide_up(n, size.n) * m);
    EXPECT_TRUE(size.m < m || split_rows == m);
  }
}

TEST(Blocks, SplitRowsOfATurnOnce) {
  std::int64_t splits = 0;
  SplitVectors rows;
  for_each_block({8, 8}, 16, 16,
                 [&](const ResultBlock& block) { splits += rows.replace(block.row) ? 1 : 0; });
  EXPECT_EQ(splits, 3);
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
