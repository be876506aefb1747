// Loops over blocks of C, and over parts of a length.
#pragma once

#include <algorithm>
#include <cstdint>

#include "planner/plan.hpp"

namespace kintsugi::core {

// Vectors of an operand, or rows or columns of C.
struct Part {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// Calls visit(part) for consecutive parts of at most `edge`.
template <class Visit>
void for_each_part(const Part& whole, std::int64_t edge, const Visit& visit) {
  for (std::int64_t done = 0; done < whole.count; done += edge)
    visit(Part{whole.first + done, std::min(edge, whole.count - done)});
}

// A block of C, or a tile of one.
struct ResultBlock {
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  std::int64_t elements() const { return rows * columns; }
};

// Calls visit(block) for every block of an m x n matrix in column-major order of the blocks: columns of B are
// split once, and rows of A once if one block has all of them.
template <class Visit>
void for_each_block(const Blocking& size, std::int64_t m, std::int64_t n, const Visit& visit) {
  for_each_part({0, n}, size.n, [&](const Part& columns) {
    for_each_part({0, m}, size.m, [&](const Part& rows) {
      visit(ResultBlock{rows.first, columns.first, rows.count, columns.count});
    });
  });
}

// True if the slices of the block before are not those of this block's rows of A.
inline bool needs_split_of_rows(const ResultBlock& block, const Blocking& size, std::int64_t m) {
  return block.column == 0 || size.m < m;
}
// True if the slices of the block before are not those of this block's columns of B.
inline bool needs_split_of_columns(const ResultBlock& block) { return block.row == 0; }

}  // namespace kintsugi::core
