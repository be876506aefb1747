// Loops over blocks of C, and over intervals of vectors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/view.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Cuts `whole` into consecutive intervals of at most `edge` vectors, and calls visit(interval) for each.
template <class Visit>
void for_each_interval(const Interval& whole, std::int64_t edge, const Visit& visit) {
  for (std::int64_t done = 0; done < whole.count; done += edge)
    visit(Interval{whole.first + done, std::min(edge, whole.count - done)});
}

// A block of C or of another matrix.
struct ResultBlock {
  std::int64_t row = 0;     // first row
  std::int64_t column = 0;  // first column
  std::int64_t rows = 0;    // number of rows
  std::int64_t columns = 0;

  std::int64_t elements() const { return rows * columns; }
  // Translates `block`, given relative to this block, into rows and columns of the matrix.
  ResultBlock in_matrix(const ResultBlock& block) const {
    return {row + block.row, column + block.column, block.rows, block.columns};
  }
};

// Calls visit(block) for every block of an m x n matrix, by columns of blocks, alternately downwards and
// upwards. In this order columns of B are split only once. Rows of A are split once for every column of
// blocks, except those of a block that follows a block of the same rows.
template <class Visit>
void for_each_block(const Blocking& size, std::int64_t m, std::int64_t n, const Visit& visit) {
  bool upwards = false;
  for_each_interval({0, n}, size.n, [&](const Interval& columns) {
    for_each_interval({0, m}, size.m, [&](const Interval& rows) {
      const std::int64_t last = divide_up(m, size.m) - 1;
      const std::int64_t row = upwards ? last * size.m - rows.first : rows.first;
      visit(ResultBlock{row, columns.first, std::min(size.m, m - row), columns.count});
    });
    upwards = !upwards;
  });
}

// Vectors of an operand of which there are slices, in a loop over blocks.
class SplitVectors {
 public:
  // True if the vectors from `first` on must be split, since the preceding block had others. There are slices
  // of them from then on.
  bool replace(std::int64_t first) { return std::exchange(first_, first) != first; }
  void forget() { first_ = -1; }

 private:
  std::int64_t first_ = -1;
};

}  // namespace kintsugi::core
