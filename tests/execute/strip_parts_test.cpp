// Tests where the parts of a strip lie in device memory: no two share an element, and all are inside.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "engines/cuda/transfers.hpp"
#include "planner/offload.hpp"

namespace kintsugi::test {
namespace {

using core::cuda::PartOfStrip;
using core::cuda::StoredMatrix;

// Cuts `count` indices at random multiples of 16.
std::vector<std::int64_t> random_cuts(std::mt19937_64& random, std::int64_t count) {
  std::vector<std::int64_t> cuts{0};
  for (std::int64_t cut = 16; cut < count; cut += 16) {
    if (random() % 3 == 0) cuts.push_back(cut);
  }
  cuts.push_back(count);
  return cuts;
}

void insert_elements(const StoredMatrix& strip, const PartOfStrip& part, std::int64_t length,
                     std::set<const std::byte*>& addresses) {
  const StoredMatrix stored = core::cuda::stored_in(strip, part, length);
  for (std::int64_t i = 0; i < part.rows; ++i) {
    for (std::int64_t j = 0; j < part.columns; ++j)
      EXPECT_TRUE(addresses.insert(stored.at(i, j)).second) << part.row + i << ", " << part.column + j;
  }
}

TEST(StripParts, ShareNoElement) {
  std::mt19937_64 random(5);
  for (int number = 0; number < 40; ++number) {
    const auto rows = static_cast<std::int64_t>(1 + random() % 90);
    const auto columns = static_cast<std::int64_t>(1 + random() % 90);
    std::vector<std::byte> memory(static_cast<std::size_t>(core::strip_stride(rows, columns)) * 4);
    const StoredMatrix strip{memory.data(), 0, number % 2 == 0, 4};
    const std::vector<std::int64_t> row_cuts = random_cuts(random, rows);
    const std::vector<std::int64_t> column_cuts = random_cuts(random, columns);
    std::set<const std::byte*> addresses;
    for (std::size_t r = 0; r + 1 < row_cuts.size(); ++r) {
      for (std::size_t c = 0; c + 1 < column_cuts.size(); ++c) {
        insert_elements(
            strip,
            {row_cuts[r], column_cuts[c], row_cuts[r + 1] - row_cuts[r], column_cuts[c + 1] - column_cuts[c]},
            strip.rows_are_lines ? columns : rows, addresses);
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(addresses.size()), rows * columns);
    EXPECT_GE(*addresses.begin(), memory.data());
    EXPECT_LE(*addresses.rbegin(), memory.data() + memory.size() - 4);
  }
}

}  // namespace
}  // namespace kintsugi::test
