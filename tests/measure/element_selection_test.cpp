// Tests samples of elements: no element is sampled twice, and the corners are always in the sample.
#include "tools/measure/metrics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

namespace kintsugi::measure {
namespace {

TEST(ElementSelection, HasDistinctElementsAndTheCorners) {
  for (const std::int64_t m : {1, 2, 3, 4, 5, 97}) {
    for (const std::int64_t n : {1, 2, 3, 5, 64, 101}) {
      for (const std::int64_t wanted : {1, 7, 50}) {
        const Selection selection = select_elements(m, n, 1, 0, wanted, 3);
        std::set<std::pair<std::int64_t, std::int64_t>> selected;
        for (const std::int64_t tile : selection.tiles) {
          for (std::int64_t r = 0; r < selection.row_count(tile); ++r) {
            for (std::int64_t s = 0; s < selection.column_count(tile); ++s) {
              selected.insert({selection.rows[selection.first_row(tile) + r],
                               selection.columns[selection.first_column(tile) + s]});
            }
          }
        }
        EXPECT_EQ(std::ssize(selected), selection.elements);
        EXPECT_GE(selection.elements, std::min(wanted, m * n));
        for (const std::int64_t i : {std::int64_t{0}, m - 1}) {
          for (const std::int64_t j : {std::int64_t{0}, n - 1})
            EXPECT_TRUE(selected.contains({i, j})) << m << " " << n;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kintsugi::measure
