// From sums in the registers of a warpgroup to entries of C.
#pragma once

#include <cstdint>
#include <limits>

#include "arith/epilogue.hpp"
#include "engines/cuda/products/sm90/pipeline.cuh"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

// Where the i-th of a thread's sums of 64 x N lies (PTX ISA: fragment of wgmma's D).
__device__ inline int sum_row(int thread, int i) {
  return thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
}
__device__ inline int sum_column(int thread, int i) { return i / 4 * 8 + thread % 4 * 2 + i % 2; }

// Rows and columns of C that a block of threads computes.
struct TileEntries {
  MatrixView<float> c;
  const VectorRange* row_ranges;
  const VectorRange* column_ranges;
  std::int64_t first_row;  // in c
  std::int64_t first_column;
  int rows;
  int columns;
};

// Whether all entries have the same slices and ranges.
struct SharedSides {
  bool a;
  bool b;
};

// So many rows or columns of the tile that a kernel was launched for.
struct Stretch {
  std::int64_t first;
  int most;

  __device__ int of(std::int64_t whole) const {
    return static_cast<int>(max(std::int64_t{0}, min(whole - first, std::int64_t{most})));
  }
};

__device__ inline TileEntries entries_of(const DeviceTile& tile, const SharedSides& shared, int entry,
                                         const Stretch& rows, const Stretch& columns) {
  return {view_of<float>(tile.c, tile.entry + entry),
          tile.a.ranges + (shared.a ? 0 : entry * tile.a.matrix.rows) + tile.first_row + rows.first,
          tile.b.ranges + (shared.b ? 0 : entry * tile.b.matrix.rows) + tile.first_column + columns.first,
          tile.first_row + rows.first,
          tile.first_column + columns.first,
          rows.of(tile.rows),
          columns.of(tile.columns)};
}

// Scales of vectors with NaN or infinities, whose entries are made one by one.
inline constexpr int special_scale = std::numeric_limits<int>::min();

__device__ inline int scale_of(const VectorRange& range) {
  return range.finite() ? range.scale : special_scale;
}

// Scales of `Rows` rows, then of columns, into shared memory; by all threads together. Whether FP32 does for
// alpha * sum * 2^-(row's + column's): where the product with alpha and both with powers of two are normal numbers, only
// the first one rounds. Slices are multiples of 2^-24 below 2^16, low ones with 2^-12 beside them where they are
// rescaled: sums are zero or between 2^-60 and 2^(32 + 26), if no more than 2^26 products are added.
template <int Rows, int Columns>
__device__ bool read_scales(const TileEntries& entries, int* scales, float alpha, int thread, int threads) {
  const int exponent = static_cast<int>(__float_as_uint(alpha) >> 23 & 0xff) - 127;
  const int most = (126 - 60 + exponent) / 2;
  const int least = -((127 - 58 - exponent - 1) / 2);
  bool narrow = -40 <= exponent && exponent <= 40;
  for (int i = thread; i < Rows + Columns; i += threads) {
    int scale = 0;
    if (i < Rows) {
      if (i < entries.rows) scale = scale_of(entries.row_ranges[i]);
    } else if (i - Rows < entries.columns) {
      scale = scale_of(entries.column_ranges[i - Rows]);
    }
    scales[i] = scale;
    narrow = narrow && least <= scale && scale <= most;
  }
  return narrow;
}

// A thread's entries, two rows of pairs of columns: visit(row, column, pair of sums, entry) for all that are there.
template <int Count, class Visit>
__device__ void for_each_pair(const TileEntries& entries, const float (&sums)[Count], int row, int thread,
                              const Visit& visit) {
  const int column = sum_column(thread, 0);
  const std::int64_t step = 8 * entries.c.column_stride;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int i = row + sum_row(thread, 2 * r);
    if (i >= entries.rows) continue;
    float* entry = &entries.c(entries.first_row + i, entries.first_column + column);
#pragma unroll
    for (int s = 0; s < Count / 4; ++s, entry += step) visit(r, column + 8 * s, &sums[4 * s + 2 * r], entry);
  }
}

__device__ inline float float_power_of_two(int exponent) { return __int_as_float((127 + exponent) << 23); }

// C = alpha sum 2^-scales, of scales for which FP32 does.
template <int Rows, int Count>
__device__ void put_narrow(const TileEntries& entries, const int* scales, float alpha,
                           const float (&sums)[Count], int row, int thread) {
  const float factors[2] = {alpha * float_power_of_two(-scales[row + sum_row(thread, 0)]),
                            alpha * float_power_of_two(-scales[row + sum_row(thread, 2)])};
  for_each_pair(entries, sums, row, thread, [&](int r, int j, const float* pair, float* entry) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      if (j + e < entries.columns)
        entry[e * entries.c.column_stride] = pair[e] * factors[r] * float_power_of_two(-scales[Rows + j + e]);
    }
  });
}

// The same with any scalars and scales as epilogue() has it: exact in double but for the addition and the last rounding.
// What has a special vector is left as it was.
template <int Rows, int Count>
__device__ void put_any(const TileEntries& entries, const int* scales, const Scalars<float>& scalars,
                        const float (&sums)[Count], int row, int thread) {
  const int row_scales[2] = {scales[row + sum_row(thread, 0)], scales[row + sum_row(thread, 2)]};
  for_each_pair(entries, sums, row, thread, [&](int r, int j, const float* pair, float* entry) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int column_scale = scales[Rows + j + e];
      if (j + e >= entries.columns || row_scales[r] == special_scale || column_scale == special_scale)
        continue;
      float& target = entry[e * entries.c.column_stride];
      const double sum = static_cast<double>(pair[e]) * power_of_two(-(row_scales[r] + column_scale));
      target = epilogue(sum, scalars.alpha, scalars.beta, scalars.beta == 0.0F ? nullptr : &target);
    }
  });
}

// Entries of special vectors.
template <int Rows>
__device__ void put_special(const DeviceSide& a, const DeviceSide& b, const TileEntries& entries,
                            const int* scales, const Scalars<float>& scalars, int thread, int threads) {
#pragma unroll 1
  for (int e = thread; e < entries.rows * entries.columns; e += threads) {
    const int i = e % entries.rows;
    const int j = e / entries.rows;
    if (scales[i] != special_scale && scales[Rows + j] != special_scale) continue;
    float& entry = entries.c(entries.first_row + i, entries.first_column + j);
    entry = special_entry<float>(operand_view<float>(a), operand_view<float>(b), entries.first_row + i,
                                 entries.first_column + j, scalars.alpha, scalars.beta,
                                 scalars.beta == 0.0F ? nullptr : &entry);
  }
}

// Who puts a tile's entries: so many threads that meet at that barrier, this one among them.
struct TileThreads {
  int thread;
  int threads;
  int barrier;
};

// C of a tile of `Rows` rows, by all of them together: each has sums of the 64 rows from `row` on. FP32 may do for sums of
// fp16's slices.
template <int Rows, int Columns, bool MayBeNarrow, int Count>
__device__ void put_entries(const float (&sums)[Count], const DeviceTile& tile, int entry,
                            const TileEntries& entries, int* scales, int row, const TileThreads& all) {
  static_assert(Count == Columns / 2);
  const Scalars<float> scalars(tile.scalars);
  const int thread = all.thread % 128;
  const bool narrow = read_scales<Rows, Columns>(entries, scales, scalars.alpha, all.thread, all.threads);
  if (all_of(MayBeNarrow && narrow && scalars.beta == 0.0F, all.barrier, all.threads)) {
    put_narrow<Rows>(entries, scales, scalars.alpha, sums, row, thread);
    return;
  }
  put_any<Rows>(entries, scales, scalars, sums, row, thread);
  DeviceSide a = tile.a;
  DeviceSide b = tile.b;
  a.entry += entry;
  b.entry += entry;
  put_special<Rows>(a, b, entries, scales, scalars, all.thread, all.threads);
}

}  // namespace kintsugi::core::cuda
