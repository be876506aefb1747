// Epilogue of kernels whose warpgroups have accumulators in the order of wgmma, or whose warps have them in
// that of mma.m16n8. It turns accumulators in registers into elements of C.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "arith/epilogue.hpp"
#include "engines/cuda/gemm/warp_specialization.cuh"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

// Row and column of a thread's i-th accumulator in a tile of 64 x N (PTX ISA: fragment of D of wgmma).
__device__ inline int sum_row(int thread, int i) {
  return thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
}
__device__ inline int sum_column(int thread, int i) { return i / 4 * 8 + thread % 4 * 2 + i % 2; }

// True if another candidate was selected for the work tile's batch item. Params must be those of a kernel
// with a tile scheduler.
template <class Params>
__device__ bool is_not_selected(const Params& params, const WorkTile& work_tile) {
  if (params.tile.condition.selection == nullptr) return false;
  return !holds(params.tile.condition, params.schedule.coord(work_tile).item);
}

// True for an operand whose slices and ranges are the same for all batch items.
struct SharedSides {
  bool a;
  bool b;
};

// Rows or columns of a tile, counted from the first one of the launch's region of C.
struct TileRange {
  std::int64_t first;
  int count;

  // Number of these rows or columns that are inside a region of `region_size` rows or columns.
  __device__ int count_inside(std::int64_t region_size) const {
    return static_cast<int>(max(std::int64_t{0}, min(region_size - first, std::int64_t{count})));
  }
};

// Scale that marks a vector with NaN or infinities. The elements of C of such a vector are computed one by
// one.
inline constexpr int special_scale = std::numeric_limits<int>::min();

__device__ inline int scale_of(const VectorRange& range) {
  return range.finite() ? range.scale : special_scale;
}

// Limits of exponents within which the epilogue may compute in FP32; EpilogueParams::load() gives the
// reasons.
inline constexpr int min_sum_exponent = -60;  // non-zero sums are at least 2^-60
inline constexpr int max_sum_exponent = 58;   // sums are below 2^58
inline constexpr int max_alpha_exponent = 40;
inline constexpr int min_normal_exponent = -126;
inline constexpr int max_normal_exponent = 127;

// Parameters of a tile's epilogue in shared memory. Some warps load them while the tile is multiplied.
template <int Rows, int Columns, int EpilogueWarps>
struct EpilogueParams {
  static constexpr int epilogue_warps = EpilogueWarps;  // warps that load the parameters

  alignas(sizeof(int2)) int scales[Rows + Columns];  // scales of the rows, then of the columns
  float* first_element;                              // first element of the tile
  std::int64_t first_row;                            // first row and column of the tile in C
  std::int64_t first_column;
  int rows;  // rows and columns of the tile that are inside C
  int columns;
  int item;  // batch item
  float alpha;
  float beta;
  bool fits_fp32_by_warp[EpilogueWarps];  // fits_fp32() for the vectors that each warp loaded

  // True if FP32 arithmetic is exact enough for alpha * sum * 2^-(row's + column's scale). It can only be
  // true for fp16 slices.
  __device__ bool fits_fp32() const {
    bool fits = true;
    for (const bool fits_vectors : fits_fp32_by_warp) fits = fits && fits_vectors;
    return fits;
  }

  // Loads the parameters. All epilogue warps must call it together; `thread` is an index among their threads.
  //
  // FP32 suffices if beta is 0 and if the products with alpha and with both powers of two are normal numbers.
  // Then only the product with alpha rounds. Elements of fp16 slices are below 2^16 and multiples of 2^-24
  // (of 2^-36 in low slices that are rescaled by 2^-12). So sums of at most 2^26 products are zero or between
  // 2^-60 and 2^58 in magnitude.
  __device__ void load(const DeviceTile& tile, const SharedSides& shared, int batch_item,
                       const TileRange& tile_rows, const TileRange& tile_columns, int thread) {
    const Scalars<float> scalars(tile.scalars);
    const int rows_inside = tile_rows.count_inside(tile.rows);
    const int columns_inside = tile_columns.count_inside(tile.columns);
    const VectorRange* row_ranges =
        tile.a.ranges + (shared.a ? 0 : batch_item * tile.a.matrix.rows) + tile.first_row + tile_rows.first;
    const VectorRange* column_ranges = tile.b.ranges + (shared.b ? 0 : batch_item * tile.b.matrix.rows) +
                                       tile.first_column + tile_columns.first;
    const int alpha_exponent = static_cast<int>(__float_as_uint(scalars.alpha) >> 23 & 0xff) - 127;
    // The result is multiplied by 2^-(row's scale + column's scale). A scale fits if the result stays a
    // normal number with another scale of the same value.
    const int max_scale = (-min_normal_exponent + min_sum_exponent + alpha_exponent) / 2;
    const int min_scale = -((max_normal_exponent - max_sum_exponent - alpha_exponent - 1) / 2);
    bool fits =
        -max_alpha_exponent <= alpha_exponent && alpha_exponent <= max_alpha_exponent && scalars.beta == 0.0F;
#pragma unroll 1
    for (int i = thread; i < Rows + Columns; i += 32 * EpilogueWarps) {
      const bool is_row = i < Rows;
      const int v = is_row ? i : i - Rows;
      int scale = 0;
      if (v < (is_row ? rows_inside : columns_inside))
        scale = scale_of((is_row ? row_ranges : column_ranges)[v]);
      scales[i] = scale;
      fits = fits && min_scale <= scale && scale <= max_scale;
    }
    fits = __all_sync(~0U, fits ? 1 : 0) != 0;
    if (thread % 32 == 0) fits_fp32_by_warp[thread / 32] = fits;
    if (thread == 0) {
      first_row = tile.first_row + tile_rows.first;
      first_column = tile.first_column + tile_columns.first;
      first_element = &view_of<float>(tile.c, tile.item + batch_item)(first_row, first_column);
      rows = rows_inside;
      columns = columns_inside;
      item = batch_item;
      alpha = scalars.alpha;
      beta = scalars.beta;
    }
  }
};

__device__ inline float float_power_of_two(int exponent) { return __int_as_float((127 + exponent) << 23); }

// Epilogue that computes elements in FP32. fits_fp32() must be true. The functions below take an epilogue,
// which has reads_c (true if value() needs the old element of C), stores() (true if an element with these
// scales is stored) and value() (the element).
class Fp32Epilogue {
 public:
  static constexpr bool reads_c = false;

  __device__ explicit Fp32Epilogue(float alpha) : alpha_(alpha) {}

  __device__ static bool stores(int, int) { return true; }
  __device__ float value(float sum, int row_scale, int column_scale, float) const {
    return sum * (alpha_ * float_power_of_two(-row_scale)) * float_power_of_two(-column_scale);
  }

 private:
  float alpha_;
};

// Epilogue for any scalars and scales. It computes elements as epilogue() does: in double, where only the
// addition and the last conversion round. It does not store elements of vectors with NaN or infinities.
// `ReadsC` is true if beta is not 0.
template <bool ReadsC>
class GeneralEpilogue {
 public:
  static constexpr bool reads_c = ReadsC;

  __device__ GeneralEpilogue(float alpha, float beta) : alpha_(alpha), beta_(beta) {}

  __device__ static bool stores(int row_scale, int column_scale) {
    return row_scale != special_scale && column_scale != special_scale;
  }
  template <class Sum>
  __device__ float value(Sum sum, int row_scale, int column_scale, float old) const {
    const double unscaled = static_cast<double>(sum) * power_of_two(-(row_scale + column_scale));
    return epilogue(unscaled, alpha_, beta_, ReadsC ? &old : nullptr);
  }

 private:
  float alpha_;
  float beta_;
};

// Stores an element by inline assembly. The compiler would not move later loads of scales from shared memory
// ahead of an ordinary store.
__device__ inline void store_element(float* element, float value) {
  asm volatile("st.global.f32 [%0], %1;" ::"l"(element), "f"(value));
}

// Stores two neighboring elements of a row of a row-major C. Four threads together write 32 bytes.
__device__ inline void store_pair(float* first, float x, float y) {
  asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(first), "f"(x), "f"(y));
}

// Methods of storing the elements of a tile. A tile is whole if all of it is inside C.
enum class StoreMode : std::uint8_t {
  paired,         // two neighbors at once; for whole tiles of a row-major C
  rows,           // rows of 32 elements by whole warps; for other tiles of a row-major C
  whole,          // one by one, without a test; for whole tiles of a C of another layout
  bounds_checked  // one by one if they are inside C; for all other tiles
};

// Fastest mode for the tile.
template <int Rows, int Columns, int EpilogueWarps>
__device__ StoreMode store_mode(const EpilogueParams<Rows, Columns, EpilogueWarps>& params,
                                const DeviceMatrix& c) {
  const bool is_whole = params.rows == Rows && params.columns == Columns;
  if (c.column_stride != 1) return is_whole ? StoreMode::whole : StoreMode::bounds_checked;
  const bool allows_pairs =
      c.row_stride % 2 == 0 && reinterpret_cast<std::uintptr_t>(params.first_element) % sizeof(float2) == 0;
  return is_whole && allows_pairs ? StoreMode::paired : StoreMode::rows;
}

// Calls visit(r, e) for the elements of a pair of columns: rows r = 0, 1 and columns e = 0, 1.
template <class Visit>
__device__ void for_each_of_pair(const Visit& visit) {
#pragma unroll
  for (int i = 0; i < 4; ++i) visit(i / 2, i % 2);
}

// Reads elements of C in pairs of columns, which begin at columns `column`, `column` + 8 and so on of the
// tile. Elements outside C are not read. `pair` is the address of the first element.
template <class IsInside, int Count>
__device__ void read_pairs(const float* pair, int column, std::int64_t row_step, std::int64_t column_step,
                           const IsInside& is_inside, float (&pairs)[Count][2][2]) {
#pragma unroll
  for (int p = 0; p < Count; ++p, pair += 8 * column_step) {
    for_each_of_pair([&](int r, int e) {
      if (is_inside(r, column + 8 * p + e)) pairs[p][r][e] = pair[r * row_step + e * column_step];
    });
  }
}

// Columns of the accumulators that a thread has: of an array as many as it holds, else those of the tile.
template <class Sums, int Columns>
inline constexpr int sum_columns = Columns;
template <int Count, int Columns>
inline constexpr int sum_columns<float[Count], Columns> = 2 * Count;

// Stores a thread's elements of the 64 rows from `row` on, and of the columns from `first_column` on. It
// handles several elements at once, so that their loads of C are in flight together. `sums` is an array or a
// class with operator[].
template <StoreMode Mode, int Rows, int Columns, int EpilogueWarps, class Epilogue, class Sums>
__device__ void store_sums(const EpilogueParams<Rows, Columns, EpilogueWarps>& params, const DeviceMatrix& c,
                           const Epilogue& epilogue, const Sums& sums, int row, int thread,
                           int first_column = 0) {
  constexpr int at_once = Epilogue::reads_c ? 2 : 4;  // pairs of columns, in two rows each
  const int row_scales[2] = {params.scales[row + sum_row(thread, 0)],
                             params.scales[row + sum_row(thread, 2)]};
  const int column = first_column + sum_column(thread, 0);
  const int rows[2] = {row + sum_row(thread, 0), row + sum_row(thread, 2)};
  const std::int64_t row_step = 8 * c.row_stride;
  const std::int64_t column_step = c.column_stride;
  float* element = params.first_element + rows[0] * c.row_stride + column * column_step;
  const auto is_inside = [&](int r, int j) {
    return Mode != StoreMode::bounds_checked || (rows[r] < params.rows && j < params.columns);
  };
#pragma unroll
  for (int begin = 0; begin < sum_columns<Sums, Columns> / 8; begin += at_once) {
    float old[at_once][2][2] = {};
    if constexpr (Epilogue::reads_c)
      read_pairs(element, column + 8 * begin, row_step, column_step, is_inside, old);
#pragma unroll
    for (int p = 0; p < at_once; ++p, element += 8 * column_step) {
      const int j = column + 8 * (begin + p);
      const int2 scales = *reinterpret_cast<const int2*>(&params.scales[Rows + j]);
      const auto value = [&](int r, int e) {
        const int scale = e == 0 ? scales.x : scales.y;
        return epilogue.value(sums[4 * (begin + p) + 2 * r + e], row_scales[r], scale, old[p][r][e]);
      };
      if constexpr (Mode == StoreMode::paired) {
        store_pair(element, value(0, 0), value(0, 1));
        store_pair(element + row_step, value(1, 0), value(1, 1));
        continue;
      }
      for_each_of_pair([&](int r, int e) {
        const int scale = e == 0 ? scales.x : scales.y;
        if (is_inside(r, j + e) && epilogue.stores(row_scales[r], scale))
          store_element(element + r * row_step + e * column_step, value(r, e));
      });
    }
  }
}

// Exchanges values between lanes whose numbers differ in LaneBit alone. The lane without the bit sends its
// values whose index has IndexBit, and receives the other lane's values whose index has not.
template <int LaneBit, int IndexBit, int Count>
__device__ void exchange_bits(float (&values)[Count]) {
  const bool has_bit = (threadIdx.x & LaneBit) != 0;
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    if ((i & IndexBit) != 0) continue;
    float& low = values[i];
    float& high = values[i | IndexBit];
    const float received = __shfl_xor_sync(~0U, has_bit ? low : high, LaneBit);
    (has_bit ? low : high) = received;
  }
}

// Stores a warp's elements, 16 rows of the tile, of a row-major C, in groups of 32 columns. The lanes
// exchange sums until each lane has all 16 rows of one column of the group. Then they write 32 neighboring
// elements of a row together. Rows need no alignment.
template <int Rows, int Columns, int EpilogueWarps, class Epilogue, int Count>
__device__ void store_rows(const EpilogueParams<Rows, Columns, EpilogueWarps>& params, const DeviceMatrix& c,
                           const Epilogue& epilogue, const float (&sums)[Count], int row, int thread,
                           int first_column = 0) {
  constexpr int at_once = 16;  // sums of a group of columns
  const int lane = thread % 32;
  const int first_row = row + thread / 32 * 16;
  // Column of the lane after the exchanges.
  int column = first_column + lane / 8 * 8 + lane % 4 * 2 + lane / 4 % 2;
#pragma unroll
  for (int begin = 0; begin < Count; begin += at_once, column += 32) {
    float group[at_once];
#pragma unroll
    for (int i = 0; i < at_once; ++i) group[i] = sums[begin + i];
    exchange_bits<4, 1>(group);
    exchange_bits<8, 4>(group);
    exchange_bits<16, 8>(group);
    const int column_scale = params.scales[Rows + column];
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      const int tile_row = first_row + i % 2 + i / 4 * 2 + i / 2 % 2 * 8;  // row of sum i after the exchanges
      const int row_scale = params.scales[tile_row];
      if (tile_row >= params.rows || column >= params.columns || !epilogue.stores(row_scale, column_scale))
        continue;
      float* element = params.first_element + tile_row * c.row_stride + column;
      const float old = Epilogue::reads_c ? *element : 0.0F;
      store_element(element, epilogue.value(group[i], row_scale, column_scale, old));
    }
  }
}

// Computes and stores the elements whose vectors have NaN or infinities. They are shared by threads 0 ...
// threads - 1.
template <int Rows, int Columns, int EpilogueWarps>
__device__ void store_special_elements(const EpilogueParams<Rows, Columns, EpilogueWarps>& params,
                                       const DeviceTile& tile, int thread, int threads) {
  DeviceSide a = tile.a;
  DeviceSide b = tile.b;
  a.item += params.item;
  b.item += params.item;
#pragma unroll 1
  for (int e = thread; e < params.rows * params.columns; e += threads) {
    const int i = e % params.rows;
    const int j = e / params.rows;
    if (params.scales[i] != special_scale && params.scales[Rows + j] != special_scale) continue;
    float& element = params.first_element[i * tile.c.row_stride + j * tile.c.column_stride];
    element = special_element<float>(operand_view<float>(a), operand_view<float>(b), params.first_row + i,
                                     params.first_column + j, params.alpha, params.beta,
                                     params.beta == 0.0F ? nullptr : &element);
  }
}

// Stores the elements that are inside C. The tile need not be whole.
template <int Rows, int Columns, int EpilogueWarps, class Epilogue, class Sums>
__device__ void store_any(const EpilogueParams<Rows, Columns, EpilogueWarps>& params, const DeviceMatrix& c,
                          const Epilogue& epilogue, const Sums& sums, int row, int thread,
                          int first_column = 0) {
  if constexpr (std::is_array_v<Sums>) {
    if (c.column_stride == 1) return store_rows(params, c, epilogue, sums, row, thread, first_column);
  }
  store_sums<StoreMode::bounds_checked>(params, c, epilogue, sums, row, thread, first_column);
}

// Stores a tile of C for any scalars and scales. All `threads` threads that hold its sums must call it. Each
// of them has sums of the 64 rows from `row` on; `thread` is its index among them.
template <int Rows, int Columns, int EpilogueWarps, class Sums>
__device__ void store_general_tile(const Sums& sums, const DeviceTile& tile,
                                   const EpilogueParams<Rows, Columns, EpilogueWarps>& params, int row,
                                   int thread, int threads) {
  if (params.beta == 0.0F) {
    store_any(params, tile.c, GeneralEpilogue</*ReadsC=*/false>(params.alpha, params.beta), sums, row,
              thread % warpgroup);
  } else {
    store_any(params, tile.c, GeneralEpilogue</*ReadsC=*/true>(params.alpha, params.beta), sums, row,
              thread % warpgroup);
  }
  store_special_elements(params, tile, thread, threads);
}

// store_general_tile(), in FP32 if that suffices.
template <FormatId SliceFormat, int Rows, int Columns, int EpilogueWarps, int Count>
__device__ void store_tile(const float (&sums)[Count], const DeviceTile& tile,
                           const EpilogueParams<Rows, Columns, EpilogueWarps>& params, int row, int thread,
                           int threads) {
  static_assert(Count == Columns / 2);
  const int warpgroup_thread = thread % warpgroup;
  const DeviceMatrix& c = tile.c;
  if (SliceFormat == FormatId::fp16 && params.fits_fp32()) {
    const Fp32Epilogue epilogue(params.alpha);
    switch (store_mode(params, c)) {
      case StoreMode::paired:
        return store_sums<StoreMode::paired>(params, c, epilogue, sums, row, warpgroup_thread);
      case StoreMode::rows: return store_rows(params, c, epilogue, sums, row, warpgroup_thread);
      case StoreMode::whole:
        return store_sums<StoreMode::whole>(params, c, epilogue, sums, row, warpgroup_thread);
      case StoreMode::bounds_checked:
        return store_sums<StoreMode::bounds_checked>(params, c, epilogue, sums, row, warpgroup_thread);
    }
  }
  store_general_tile(sums, tile, params, row, thread, threads);
}

// store_tile() for kernels whose warps have a tile of their own each: strips of 16 rows, from (row, column)
// of the thread block's tile on. All `threads` threads of the thread block must call it.
template <FormatId SliceFormat, int Rows, int Columns, int EpilogueWarps, int Strips, int Count>
__device__ void store_warp_tile(const float (&sums)[Strips][Count], const DeviceTile& tile,
                                const EpilogueParams<Rows, Columns, EpilogueWarps>& params, int row,
                                int column, int threads) {
  const DeviceMatrix& c = tile.c;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto for_each_strip = [&](const auto& store) {
#pragma unroll
    for (int s = 0; s < Strips; ++s) store(sums[s], row + 16 * s);
  };
  const auto store_by = [&](const auto& epilogue) {
    for_each_strip([&](const float(&strip)[Count], int strip_row) {
      store_any(params, c, epilogue, strip, strip_row, lane, column);
    });
  };
  if (SliceFormat == FormatId::fp16 && params.fits_fp32()) {
    const Fp32Epilogue epilogue(params.alpha);
    switch (store_mode(params, c)) {
      case StoreMode::paired:
        return for_each_strip([&](const float(&strip)[Count], int strip_row) {
          store_sums<StoreMode::paired>(params, c, epilogue, strip, strip_row, lane, column);
        });
      case StoreMode::whole:
        return for_each_strip([&](const float(&strip)[Count], int strip_row) {
          store_sums<StoreMode::whole>(params, c, epilogue, strip, strip_row, lane, column);
        });
      case StoreMode::rows:
      case StoreMode::bounds_checked: return store_by(epilogue);
    }
  }
  if (params.beta == 0.0F) {
    store_by(GeneralEpilogue</*ReadsC=*/false>(params.alpha, params.beta));
  } else {
    store_by(GeneralEpilogue</*ReadsC=*/true>(params.alpha, params.beta));
  }
  store_special_elements(params, tile, static_cast<int>(threadIdx.x), threads);
}

}  // namespace kintsugi::core::cuda
