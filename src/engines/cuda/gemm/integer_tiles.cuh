// Products of integers that no matrix unit multiplies: tiles of 64 x 64, sixteen inner indices per step.
#pragma once

#include <cstdint>

#include "engines/cuda/gemm/int52_gemm.hpp"

namespace kintsugi::core::cuda {

// Integers of one step of k of a tile's vectors. Those of neighboring vectors are adjacent. The padding
// avoids bank conflicts of writes along k.
template <class Word>
struct IntegerStep {
  Word word[integer_depth][integer_tile + 1];
};

// Loads a step of integers word(vector of the tile, inner index of the step). Sixteen threads load sixteen
// neighbors along k.
template <class Word, class Source>
__device__ void load(IntegerStep<Word>& step, const Source& word) {
  const auto thread = static_cast<int>(threadIdx.x);
  const int p = thread % integer_depth;
#pragma unroll
  for (int v = thread / integer_depth; v < integer_tile; v += integer_threads / integer_depth)
    step.word[p][v] = word(v, p);
}

// Sums of one thread. Its rows are `integer_side` apart, and so are its columns.
template <class Word, class Sum>
class IntegerSums {
  static constexpr int sums_per_side = integer_tile / integer_side;

 public:
  // Adds the products of a step.
  __device__ void add(const IntegerStep<Word>& a, const IntegerStep<Word>& b) {
#pragma unroll 4
    for (int p = 0; p < integer_depth; ++p) {
      Word x[sums_per_side];
      Word y[sums_per_side];
#pragma unroll
      for (int e = 0; e < sums_per_side; ++e) {
        x[e] = a.word[p][row(e)];
        y[e] = b.word[p][column(e)];
      }
#pragma unroll
      for (int c = 0; c < sums_per_side; ++c) {
#pragma unroll
        for (int r = 0; r < sums_per_side; ++r) sum_[c][r] += Sum{x[r]} * y[c];
      }
    }
  }

  // Writes the sums to a matrix of `rows` x `columns` sums. The tile begins at (first_row, first_column) of
  // this matrix.
  __device__ void write(Sum* sums, std::int64_t rows, std::int64_t columns, std::int64_t first_row,
                        std::int64_t first_column) const {
#pragma unroll
    for (int c = 0; c < sums_per_side; ++c) {
      const std::int64_t j = first_column + column(c);
#pragma unroll
      for (int r = 0; r < sums_per_side; ++r) {
        const std::int64_t i = first_row + row(r);
        if (i < rows && j < columns) sums[i + j * rows] = sum_[c][r];
      }
    }
  }

 private:
  __device__ static int row(int e) { return static_cast<int>(threadIdx.x) % integer_side + e * integer_side; }
  __device__ static int column(int e) {
    return static_cast<int>(threadIdx.x) / integer_side + e * integer_side;
  }

  Sum sum_[sums_per_side][sums_per_side] = {};
};

}  // namespace kintsugi::core::cuda
