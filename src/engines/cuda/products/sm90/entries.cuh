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

// Scales of vectors with NaN or infinities, whose entries are made one by one.
inline constexpr int special_scale = std::numeric_limits<int>::min();

__device__ inline int scale_of(const VectorRange& range) {
  return range.finite() ? range.scale : special_scale;
}

// What sums of a tile of Rows x Columns need to become entries of C, in shared memory: some warps find it while they are
// added.
template <int Rows, int Columns, int Finders>
struct TileEnd {
  static constexpr int finders = Finders;  // warps

  alignas(sizeof(int2)) int scales[Rows + Columns];  // of rows, then of columns
  float* first;                                      // entry of the tile
  std::int64_t first_row;                            // in C
  std::int64_t first_column;
  int rows;  // that are there
  int columns;
  int entry;  // of the batch
  float alpha;
  float beta;
  bool narrow[Finders];  // as each found its vectors and scalars

  // Whether FP32 does for alpha * sum * 2^-(row's + column's), of slices of fp16.
  __device__ bool is_narrow() const {
    bool all = true;
    for (const bool one : narrow) all = all && one;
    return all;
  }

  // By all finders together. Narrow: beta is 0, and where the product with alpha and both with powers of two are normal
  // numbers, only the first one rounds. Slices of fp16 are multiples of 2^-24 below 2^16, low ones with 2^-12 beside them
  // where they are rescaled: sums are zero or between 2^-60 and 2^(32 + 26), if no more than 2^26 products are added.
  __device__ void find(const DeviceTile& tile, const SharedSides& shared, int of_entry,
                       const Stretch& tile_rows, const Stretch& tile_columns, int thread) {
    const Scalars<float> scalars(tile.scalars);
    const int rows_there = tile_rows.of(tile.rows);
    const int columns_there = tile_columns.of(tile.columns);
    const VectorRange* of_rows =
        tile.a.ranges + (shared.a ? 0 : of_entry * tile.a.matrix.rows) + tile.first_row + tile_rows.first;
    const VectorRange* of_columns = tile.b.ranges + (shared.b ? 0 : of_entry * tile.b.matrix.rows) +
                                    tile.first_column + tile_columns.first;
    const int exponent = static_cast<int>(__float_as_uint(scalars.alpha) >> 23 & 0xff) - 127;
    const int most = (126 - 60 + exponent) / 2;
    const int least = -((127 - 58 - exponent - 1) / 2);
    bool fits = -40 <= exponent && exponent <= 40 && scalars.beta == 0.0F;
#pragma unroll 1
    for (int i = thread; i < Rows + Columns; i += 32 * Finders) {
      const bool of_row = i < Rows;
      const int v = of_row ? i : i - Rows;
      int scale = 0;
      if (v < (of_row ? rows_there : columns_there)) scale = scale_of((of_row ? of_rows : of_columns)[v]);
      scales[i] = scale;
      fits = fits && least <= scale && scale <= most;
    }
    fits = __all_sync(~0U, fits ? 1 : 0) != 0;
    if (thread % 32 == 0) narrow[thread / 32] = fits;
    if (thread == 0) {
      first_row = tile.first_row + tile_rows.first;
      first_column = tile.first_column + tile_columns.first;
      first = &view_of<float>(tile.c, tile.entry + of_entry)(first_row, first_column);
      rows = rows_there;
      columns = columns_there;
      entry = of_entry;
      alpha = scalars.alpha;
      beta = scalars.beta;
    }
  }
};

__device__ inline float float_power_of_two(int exponent) { return __int_as_float((127 + exponent) << 23); }

// C = alpha sum 2^-scales, of scales for which FP32 does.
class NarrowEntry {
 public:
  static constexpr bool reads = false;

  __device__ NarrowEntry(float alpha, const int (&row_scales)[2])
      : factors_{alpha * float_power_of_two(-row_scales[0]), alpha * float_power_of_two(-row_scales[1])} {}

  __device__ bool is_put(int, int) const { return true; }
  __device__ float value(float sum, int r, int column_scale, float) const {
    return sum * factors_[r] * float_power_of_two(-column_scale);
  }

 private:
  float factors_[2];
};

// The same with any scalars and scales as epilogue() has it: exact in double but for the addition and the last rounding.
// What has a special vector is left as it was. `Reads`: beta is not 0.
template <bool Reads>
class AnyEntry {
 public:
  static constexpr bool reads = Reads;

  __device__ AnyEntry(float alpha, float beta, const int (&row_scales)[2])
      : alpha_(alpha), beta_(beta), row_scales_{row_scales[0], row_scales[1]} {}

  __device__ bool is_put(int r, int column_scale) const {
    return row_scales_[r] != special_scale && column_scale != special_scale;
  }
  __device__ float value(float sum, int r, int column_scale, float old) const {
    const double unscaled = static_cast<double>(sum) * power_of_two(-(row_scales_[r] + column_scale));
    return epilogue(unscaled, alpha_, beta_, Reads ? &old : nullptr);
  }

 private:
  float alpha_;
  float beta_;
  int row_scales_[2];
};

// To C, which no shared memory is: loads of scales need not wait for it, as the compiler would have it.
__device__ inline void store_entry(float* entry, float value) {
  asm volatile("st.global.f32 [%0], %1;" ::"l"(entry), "f"(value));
}

// Two beside each other: of a row whose entries are, so that four threads write 32 bytes at once.
__device__ inline void store_pair(float* first, float x, float y) {
  asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(first), "f"(x), "f"(y));
}

// How a thread's entries of a tile leave: one by one, if they are there; all of them are; in pairs.
enum class Leaving : std::uint8_t { singly, whole, in_pairs };

// Of an entry that has no exceptions.
template <int Rows, int Columns, int Finders>
__device__ Leaving leaving(const TileEnd<Rows, Columns, Finders>& end, const DeviceMatrix& c) {
  if (end.rows != Rows || end.columns != Columns) return Leaving::singly;
  const bool pairs = c.column_stride == 1 && c.row_stride % 2 == 0 &&
                     reinterpret_cast<std::uintptr_t>(end.first) % sizeof(float2) == 0;
  return pairs ? Leaving::in_pairs : Leaving::whole;
}

// A thread's entries, some at once: what is read of them is on its way together.
template <Leaving How, int Rows, int Columns, int Finders, class Entry, int Count>
__device__ void put_sums(const TileEnd<Rows, Columns, Finders>& end, const DeviceMatrix& c,
                         const Entry& entry, const float (&sums)[Count], int row, int thread) {
  constexpr int at_once = Entry::reads ? 2 : 4;  // pairs of columns, in two rows each
  const int column = sum_column(thread, 0);
  const int rows[2] = {row + sum_row(thread, 0), row + sum_row(thread, 2)};
  const std::int64_t row_step = 8 * c.row_stride;
  const std::int64_t column_step = c.column_stride;
  float* first = end.first + rows[0] * c.row_stride + column * column_step;
  const auto is_there = [&](int r, int j) {
    return How != Leaving::singly || (rows[r] < end.rows && j < end.columns);
  };
  const auto for_each_of_pair = [](const auto& visit) {
#pragma unroll
    for (int i = 0; i < 4; ++i) visit(i / 2, i % 2);
  };
#pragma unroll
  for (int begin = 0; begin < Count / 4; begin += at_once) {
    float old[at_once][2][2] = {};
    float* pair = first;
#pragma unroll
    for (int p = 0; Entry::reads && p < at_once; ++p, pair += 8 * column_step) {
      for_each_of_pair([&](int r, int e) {
        if (is_there(r, column + 8 * (begin + p) + e)) old[p][r][e] = pair[r * row_step + e * column_step];
      });
    }
#pragma unroll
    for (int p = 0; p < at_once; ++p, first += 8 * column_step) {
      const int j = column + 8 * (begin + p);
      const int2 scales = *reinterpret_cast<const int2*>(&end.scales[Rows + j]);
      const auto value = [&](int r, int e) {
        return entry.value(sums[4 * (begin + p) + 2 * r + e], r, e == 0 ? scales.x : scales.y, old[p][r][e]);
      };
      if constexpr (How == Leaving::in_pairs) {
        store_pair(first, value(0, 0), value(0, 1));
        store_pair(first + row_step, value(1, 0), value(1, 1));
        continue;
      }
      for_each_of_pair([&](int r, int e) {
        const int scale = e == 0 ? scales.x : scales.y;
        if (is_there(r, j + e) && entry.is_put(r, scale)) {
          store_entry(first + r * row_step + e * column_step, value(r, e));
        }
      });
    }
  }
}

// Entries of special vectors.
template <int Rows, int Columns, int Finders>
__device__ void put_special(const TileEnd<Rows, Columns, Finders>& end, const DeviceTile& tile, int thread,
                            int threads) {
  DeviceSide a = tile.a;
  DeviceSide b = tile.b;
  a.entry += end.entry;
  b.entry += end.entry;
#pragma unroll 1
  for (int e = thread; e < end.rows * end.columns; e += threads) {
    const int i = e % end.rows;
    const int j = e / end.rows;
    if (end.scales[i] != special_scale && end.scales[Rows + j] != special_scale) continue;
    float& entry = end.first[i * tile.c.row_stride + j * tile.c.column_stride];
    entry =
        special_entry<float>(operand_view<float>(a), operand_view<float>(b), end.first_row + i,
                             end.first_column + j, end.alpha, end.beta, end.beta == 0.0F ? nullptr : &entry);
  }
}

// C of a tile, by all `threads` that have its sums, this one those of the 64 rows from `row` on.
template <bool OfFp16, int Rows, int Columns, int Finders, int Count>
__device__ void put_entries(const float (&sums)[Count], const DeviceTile& tile,
                            const TileEnd<Rows, Columns, Finders>& end, int row, int thread, int threads) {
  static_assert(Count == Columns / 2);
  const int of_group = thread % warpgroup;
  const int row_scales[2] = {end.scales[row + sum_row(of_group, 0)], end.scales[row + sum_row(of_group, 2)]};
  if (OfFp16 && end.is_narrow()) {
    const NarrowEntry entry(end.alpha, row_scales);
    switch (leaving(end, tile.c)) {
      case Leaving::in_pairs: return put_sums<Leaving::in_pairs>(end, tile.c, entry, sums, row, of_group);
      case Leaving::whole: return put_sums<Leaving::whole>(end, tile.c, entry, sums, row, of_group);
      case Leaving::singly: return put_sums<Leaving::singly>(end, tile.c, entry, sums, row, of_group);
    }
  }
  if (end.beta == 0.0F) {
    put_sums<Leaving::singly>(end, tile.c, AnyEntry<false>(end.alpha, end.beta, row_scales), sums, row,
                              of_group);
  } else {
    put_sums<Leaving::singly>(end, tile.c, AnyEntry<true>(end.alpha, end.beta, row_scales), sums, row,
                              of_group);
  }
  put_special(end, tile, thread, threads);
}

}  // namespace kintsugi::core::cuda
