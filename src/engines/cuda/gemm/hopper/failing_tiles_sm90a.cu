// Products of tiles that fail Eq. 9 (docs/schemes/mixpert.md, section 4). This kernel runs before the GEMM
// kernel of the other tiles, whose epilogue adds the sums of this kernel. A thread block has 64 rows and 64
// columns of C. Each of its two warps has all of these rows and 32 of the columns. For a failing tile, a warp
// decodes the elements of the tile and of the tiles that are multiplied by it, 32 inner indices at a time,
// into the registers in which mma.sync reads them. So warps exchange nothing, and while one warp waits for
// elements, others decode or multiply. The number of failing tiles differs from warp to warp, so the warps of
// a larger thread block would often wait for one of them.
#include "arith/range.hpp"
#include "arith/tile_arithmetic.hpp"
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/gemm/epilogue.cuh"
#include "engines/cuda/gemm/hopper/failing_sums.cuh"
#include "engines/cuda/gemm/weighted_tile_params.hpp"
#include "engines/cuda/ptx/mma.cuh"

namespace kintsugi::core::cuda {

// The half-precision program of tiles that fail Eq. 9 (docs/schemes/mixpert.md, section 4): digits of 8 bits
// in fp16 fragments of mma.sync.

// Inner indices of a vector that one thread decodes: four threads share a piece, 32 inner indices with one
// exponent. The instructions may multiply them in any order that is the same for A and B, since sums over a
// piece are exact.
inline constexpr int half_elements = half_piece / 4;

// A digit of 8 bits is the fp16 number digit * 2^-24, a subnormal one: its bits are the digit's. So sums of
// products of two digits are in units of 2^-48.
inline constexpr float units_of_digit_sums = 0x1p48F;

// Shift of 64 bits by any number.
__device__ inline std::uint64_t shift_right(std::uint64_t bits, int shift) {
  std::uint64_t result;
  asm("shr.b64 %0, %1, %2;" : "=l"(result) : "l"(bits), "r"(shift));
  return result;
}

// The integers of a vector's elements (half_integer() of arith/tile_arithmetic.hpp) in FP32: elements are
// scaled so that the piece's largest exponent becomes 7, or less where 2^126 does not suffice for that.
class HalfScale {
 public:
  __device__ explicit HalfScale(float largest) {
    constexpr int leading_bits = 7;
    constexpr int max_shift = 126;
    const int exponent = exponent_of(largest);
    const int shift = min(leading_bits - exponent, max_shift);
    factor_ = __int_as_float((shift + 127) << 23);
    const int scaled_exponent = exponent + shift;
    rounding_limit_ = __int_as_float((scaled_exponent - 24 + 127) << 23);
    biased_exponent_ = scaled_exponent + 127;
  }

  // Returns half_integer(x, exponent) * 2^8, with the sign of x as bit 63. Elements that have bits below the
  // integer's unit lie below rounding_limit_, where the unit is that of FP32's additions.
  __device__ std::uint64_t integer(float x) const {
    float scaled = __fmul_rn(fabsf(x), factor_);
    if (scaled < rounding_limit_) scaled = __fadd_rn(scaled, rounding_limit_) - rounding_limit_;
    const std::uint32_t bits = __float_as_uint(scaled);
    const std::uint32_t significand = (bits & 0x7fffffU) | 0x800000U;
    const int shift = biased_exponent_ - static_cast<int>(bits >> 23);  // more than 64 for zero
    const std::uint64_t sign = __float_as_uint(x) & 0x80000000U;
    return shift_right(std::uint64_t{significand} << 32, shift) | sign << 32;
  }

 private:
  float factor_;
  float rounding_limit_;
  int biased_exponent_;
};

// Words of two elements' digits 0 to 5, from HalfScale::integer() of both: the high byte of each half of a
// word has the sign, the low byte the digit.
struct Fp16Pair {
  std::uint32_t words[half_digits];

  __device__ Fp16Pair(std::uint64_t x, std::uint64_t y) {
    const auto high_x = static_cast<std::uint32_t>(x >> 32);  // sign, digits 0, 1 and 2
    const auto high_y = static_cast<std::uint32_t>(y >> 32);
    const auto low_x = static_cast<std::uint32_t>(x);  // digits 3, 4 and 5, and zeros
    const auto low_y = static_cast<std::uint32_t>(y);
    const std::uint32_t signs = __byte_perm(high_x, high_y, 0x0073);
    const std::uint32_t low = __byte_perm(low_x, low_y, 0x7632);
    words[0] = __byte_perm(high_x, high_y, 0x7632);
    words[1] = __byte_perm(high_x, high_y, 0x7531);
    words[2] = __byte_perm(high_x, high_y, 0x7430);
    words[3] = __byte_perm(low, signs, 0x5341);
    words[4] = __byte_perm(low, signs, 0x5240);
    words[5] = __byte_perm(__byte_perm(low_x, low_y, 0x0051), signs, 0x5140);
  }
};

// Scale of a vector's elements, and its weight: 2^q relative to the panel's exponent. The vector's four
// threads, neighbors in a warp, find it together.
struct HalfVectorScale {
  float weight;
  HalfScale scale;

  __device__ HalfVectorScale(const float (&elements)[half_elements], int panel_exponent)
      : HalfVectorScale(largest_of(elements), panel_exponent) {}

 private:
  __device__ HalfVectorScale(float largest, int panel_exponent)
      : weight(largest == 0.0F ? 0.0F : tile_weight(exponent_of(largest) - panel_exponent)), scale(largest) {}

  __device__ static float largest_of(const float (&elements)[half_elements]) {
    float largest = 0;
#pragma unroll
    for (int e = 0; e < half_elements; ++e) largest = fmaxf(largest, fabsf(elements[e]));
    largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 1));
    return fmaxf(largest, __shfl_xor_sync(~0U, largest, 2));
  }
};

// A thread's registers of A: digits of two rows, for the first or the second of a piece's two instructions of
// 16 inner indices. NaN and infinities give any digits, since no element of C of such a vector uses sums.
struct Fp16Rows {
  std::uint32_t digits[half_digits][4];

  __device__ Fp16Rows(const float (&low)[half_elements], const float (&high)[half_elements],
                      const HalfScale& low_scale, const HalfScale& high_scale, int instruction) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const int e = 4 * instruction + 2 * pair;
      const Fp16Pair of_low(low_scale.integer(low[e]), low_scale.integer(low[e + 1]));
      const Fp16Pair of_high(high_scale.integer(high[e]), high_scale.integer(high[e + 1]));
#pragma unroll
      for (int s = 0; s < half_digits; ++s) {
        digits[s][2 * pair] = of_low.words[s];
        digits[s][2 * pair + 1] = of_high.words[s];
      }
    }
  }
};

// A thread's registers of B: digits of one column, for one of those two instructions.
struct Fp16Columns {
  std::uint32_t digits[half_digits][2];

  __device__ Fp16Columns(const float (&elements)[half_elements], const HalfScale& scale, int instruction) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const int e = 4 * instruction + 2 * pair;
      const Fp16Pair of_pair(scale.integer(elements[e]), scale.integer(elements[e + 1]));
#pragma unroll
      for (int s = 0; s < half_digits; ++s) digits[s][pair] = of_pair.words[s];
    }
  }
};

// A thread's sums of products of digits of 16 rows and 8 columns in one piece. The products of digits s and
// w - s, for all s, have one sum.
class DigitSums {
 public:
  // Successive instructions have different sums, so that none waits for the one before.
  __device__ void add(const Fp16Rows& rows, const Fp16Columns& columns) {
#pragma unroll
    for (int s = 0; s < half_digits; ++s) {
#pragma unroll
      for (int t = 0; s + t < half_digits; ++t) mma_fp16(sums_[s + t], rows.digits[s], columns.digits[t]);
    }
  }

  // Adds the piece to the lane's sums, which are those of FailingSums: with w descending, as half_value()
  // (arith/tile_arithmetic.hpp) does. A thread has the weights of its rows and of its column in registers of
  // mma.sync; its sums are of two other columns.
  __device__ void add_to(float (&sums)[4][32], float low_weight, float high_weight,
                         float column_weight) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const float row_weights[2]{low_weight, high_weight};
    float column_weights[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) column_weights[e] = __shfl_sync(~0U, column_weight, (lane % 4 * 2 + e) * 4);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float value = sums_[half_digits - 1][i];
#pragma unroll
      for (int w = half_digits - 2; w >= 0; --w) value = __fmaf_rn(value, 0x1p-8F, sums_[w][i]);
      sums[i][lane] = __fmaf_rn(__fmul_rn(value, units_of_digit_sums),
                                __fmul_rn(row_weights[i / 2], column_weights[i % 2]), sums[i][lane]);
    }
  }

 private:
  float sums_[half_digits][4] = {};
};

namespace {

constexpr int warps = failing_threads / 32;
constexpr int warp_panels = 4;  // of a warp's rows, and of its columns
constexpr int row_panels = failing_rows / weighted_tile_rows;
constexpr int column_panels = failing_columns / weighted_tile_columns;
static_assert(row_panels == warp_panels && column_panels == warps * warp_panels);

// A warp's panels that fail, one bit each. Panels of rows have the first bits, and those of columns follow
// from bit warp_panels on.
using PanelMask = std::uint32_t;

// Vectors of one operand that a thread block multiplies.
struct FailingSide {
  MatrixView<const float> elements;  // vectors x k
  std::int64_t first;                // the thread block's first vector
  int count;                         // vectors inside the region of C
  const VectorRange* ranges;         // of the first vector
  const float* weights;              // of the first panel's first tile along k
  std::int64_t panels;               // distance of weights from tile to tile along k
  unsigned failing_panels;
};

struct FailingStorage {
  // Sums of each warp's panels of rows and of columns, in the order of FailingSums::offset().
  float sums[warps][warp_panels][warp_panels][4][32];
  int row_scales[failing_rows];
  int column_scales[failing_columns];
  FailingSide a;  // in shared memory because registers are few
  FailingSide b;
};
static_assert(sizeof(FailingStorage) <= failing_shared_bytes);

// Bits of the panels that have failing tiles. Every warp must call this function.
template <int Panels>
__device__ unsigned find_failing_panels(const std::int32_t* failures, int count, int panel_vectors) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool exists = lane < Panels && lane * panel_vectors < count;
  return __ballot_sync(~0U, exists && __ldcg(failures + lane) != 0 ? 1 : 0);
}

__device__ FailingSide rows_of(const WeightedTileParams& params, std::int64_t item, const TileRange& range) {
  const DeviceSide& side = params.tile.a;
  const std::int64_t slices_item = params.shares_a ? 0 : item;
  const std::int64_t panel = range.first / weighted_tile_rows;
  const int count = range.count_inside(params.tile.rows);
  const std::int64_t first = params.tile.first_row + range.first;
  return {view_of<const float>(side.matrix, side.item + item),
          first,
          count,
          side.ranges + slices_item * side.matrix.rows + first,
          params.weights_a + slices_item * params.panels_a * params.tiles_of_vector + panel,
          params.panels_a,
          find_failing_panels<row_panels>(params.failures_a + slices_item * params.panels_a + panel, count,
                                          weighted_tile_rows)};
}

__device__ FailingSide columns_of(const WeightedTileParams& params, std::int64_t item,
                                  const TileRange& range) {
  const DeviceSide& side = params.tile.b;
  const std::int64_t slices_item = params.shares_b ? 0 : item;
  const std::int64_t panel = range.first / weighted_tile_columns;
  const int count = range.count_inside(params.tile.columns);
  const std::int64_t first = params.tile.first_column + range.first;
  return {view_of<const float>(side.matrix, side.item + item),
          first,
          count,
          side.ranges + slices_item * side.matrix.rows + first,
          params.weights_b + slices_item * params.panels_b * params.tiles_of_vector + panel,
          params.panels_b,
          find_failing_panels<column_panels>(params.failures_b + slices_item * params.panels_b + panel, count,
                                             weighted_tile_columns)};
}

// Loads the scales of vectors. The scale of a vector with NaN or infinities is replaced by 0, because no
// element of C uses that vector's sums.
__device__ void load_scales(const FailingSide& side, int* scales, int vectors) {
  for (int v = static_cast<int>(threadIdx.x); v < vectors; v += failing_threads) {
    const int scale = v < side.count ? scale_of(side.ranges[v]) : 0;
    scales[v] = scale == special_scale ? 0 : scale;
  }
}

// Bits of the panels, from `first_panel` on, whose tile `tile` fails. A tile that fails has the weight -0.
__device__ unsigned failing_panels_of_tile(const FailingSide& side, int first_panel, std::int64_t tile) {
  const auto* weights = reinterpret_cast<const float4*>(side.weights + tile * side.panels + first_panel);
  const float4 weight = __ldcg(weights);
  const float each[warp_panels]{weight.x, weight.y, weight.z, weight.w};
  unsigned mask = 0;
#pragma unroll
  for (int i = 0; i < warp_panels; ++i) mask |= __float_as_uint(each[i]) >> 31 << i;
  return mask & side.failing_panels >> first_panel;
}

// Reads the thread's elements of vector v in the piece that begins at inner index `piece`; zeros beyond the
// operand.
__device__ void read_elements(const FailingSide& side, int v, std::int64_t piece,
                              float (&elements)[half_elements]) {
  const std::int64_t begin = piece + threadIdx.x % 4 * half_elements;
  const std::int64_t left = v < side.count ? side.elements.columns - begin : 0;
  const std::int64_t stride = side.elements.column_stride;
  const float* source = &side.elements(side.first + (v < side.count ? v : 0), 0) + begin * stride;
  if (stride == 1 && left >= half_elements &&
      reinterpret_cast<std::uintptr_t>(source) % sizeof(float4) == 0) {
    const auto* fours = reinterpret_cast<const float4*>(source);
    const float4 low = fours[0];
    const float4 high = fours[1];
    const float all[half_elements]{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int e = 0; e < half_elements; ++e) elements[e] = all[e];
  } else {
#pragma unroll
    for (int e = 0; e < half_elements; ++e) elements[e] = e < left ? source[e * stride] : 0.0F;
  }
}

// Number of the first panel of a mask; -1 if the mask is empty.
__device__ int lowest_panel(unsigned panels) { return __ffs(static_cast<int>(panels)) - 1; }

// Rows and columns of a warp. Its panels of rows are those of the thread block.
struct WarpPart {
  int first_column_panel;  // of the thread block's
  int rows;                // panels of rows that are inside the region of C
  int columns;

  __device__ WarpPart(const FailingSide& a, const FailingSide& b) {
    first_column_panel = static_cast<int>(threadIdx.x) / 32 * warp_panels;
    rows = panels_in_c(a.count, weighted_tile_rows, 0);
    columns = panels_in_c(b.count, weighted_tile_columns, first_column_panel);
  }

  // Bits of the panels of rows, or of columns, in a mask.
  __device__ static unsigned row_mask(PanelMask panels) { return panels & ((1U << warp_panels) - 1); }
  __device__ static unsigned column_mask(PanelMask panels) { return panels >> warp_panels; }

 private:
  __device__ static int panels_in_c(int count, int panel_vectors, int first_panel) {
    return max(0, min((count + panel_vectors - 1) / panel_vectors - first_panel, warp_panels));
  }
};

// A thread's elements of a panel, as in the fragments of mma.sync. In a panel of rows the thread has the rows
// g and g + 8, where g = lane / 4. In a panel of columns it has column g.
struct RowElements {
  float row[half_elements];
  float row_plus_8[half_elements];

  __device__ void read(const FailingSide& a, int panel, std::int64_t piece) {
    const int v = panel * weighted_tile_rows + static_cast<int>(threadIdx.x) % 32 / 4;
    read_elements(a, v, piece, row);
    read_elements(a, v + 8, piece, row_plus_8);
  }
};
struct ColumnElements {
  float each[half_elements];

  __device__ void read(const FailingSide& b, int panel, std::int64_t piece) {
    read_elements(b, panel * weighted_tile_columns + static_cast<int>(threadIdx.x) % 32 / 4, piece, each);
  }
};

// Scales of a thread's two rows in a piece. The negated scale of a row is the exponent that undoes the row's
// scaling by the split.
struct RowScales {
  HalfVectorScale row;
  HalfVectorScale row_plus_8;

  __device__ RowScales(const RowElements& rows, const FailingStorage& storage, int panel)
      : row(rows.row, -scales_of(storage, panel)[0]),
        row_plus_8(rows.row_plus_8, -scales_of(storage, panel)[8]) {}

 private:
  __device__ static const int* scales_of(const FailingStorage& storage, int panel) {
    return storage.row_scales + panel * weighted_tile_rows + threadIdx.x % 32 / 4;
  }
};

__device__ HalfVectorScale column_scale(const ColumnElements& columns, const FailingStorage& storage,
                                        int panel) {
  const int scale = storage.column_scales[panel * weighted_tile_columns + threadIdx.x % 32 / 4];
  return HalfVectorScale(columns.each, -scale);
}

// Multiplies a failing tile of rows by all of the warp's columns. While one panel of columns is multiplied,
// the elements of the next panel are read.
__device__ void multiply_rows(const WarpPart& part, int row, std::int64_t piece, FailingStorage& storage) {
  float(&sums)[warp_panels][4][32] = storage.sums[threadIdx.x / 32][row];
  RowElements elements;
  ColumnElements next;
  elements.read(storage.a, row, piece);
  next.read(storage.b, part.first_column_panel, piece);
  const RowScales scales(elements, storage, row);
  const Fp16Rows first(elements.row, elements.row_plus_8, scales.row.scale, scales.row_plus_8.scale, 0);
  const Fp16Rows second(elements.row, elements.row_plus_8, scales.row.scale, scales.row_plus_8.scale, 1);
#pragma unroll 1
  for (int column = 0; column < part.columns; ++column) {
    const ColumnElements present = next;
    if (column + 1 < part.columns) next.read(storage.b, part.first_column_panel + column + 1, piece);
    const HalfVectorScale vector = column_scale(present, storage, part.first_column_panel + column);
    DigitSums digit_sums;
    digit_sums.add(first, Fp16Columns(present.each, vector.scale, 0));
    digit_sums.add(second, Fp16Columns(present.each, vector.scale, 1));
    digit_sums.add_to(sums[column], scales.row.weight, scales.row_plus_8.weight, vector.weight);
  }
}

// Multiplies a failing tile of columns by those panels of the warp's rows that `rows` names.
__device__ void multiply_columns(const WarpPart& part, int column, unsigned rows, std::int64_t piece,
                                 FailingStorage& storage) {
  if (rows == 0) return;
  ColumnElements elements;
  RowElements next;
  elements.read(storage.b, part.first_column_panel + column, piece);
  int row = lowest_panel(rows);
  next.read(storage.a, row, piece);
  const HalfVectorScale vector = column_scale(elements, storage, part.first_column_panel + column);
  const Fp16Columns first(elements.each, vector.scale, 0);
  const Fp16Columns second(elements.each, vector.scale, 1);
#pragma unroll 1
  while (row >= 0) {
    const RowScales scales(next, storage, row);
    DigitSums digit_sums;
    digit_sums.add(Fp16Rows(next.row, next.row_plus_8, scales.row.scale, scales.row_plus_8.scale, 0), first);
    const Fp16Rows rest(next.row, next.row_plus_8, scales.row.scale, scales.row_plus_8.scale, 1);
    float(&sums)[4][32] = storage.sums[threadIdx.x / 32][row][column];
    rows &= rows - 1;
    row = lowest_panel(rows);
    if (row >= 0) next.read(storage.a, row, piece);
    digit_sums.add(rest, second);
    digit_sums.add_to(sums, scales.row.weight, scales.row_plus_8.weight, vector.weight);
  }
}

// Multiplies the warp's part of a tile along k in which these panels fail.
__device__ void multiply_tile(const WarpPart& part, PanelMask panels, int tile, int depth,
                              FailingStorage& storage) {
#pragma unroll 1
  for (int offset = 0; offset < depth; offset += half_piece) {
    const std::int64_t piece = std::int64_t{tile} * depth + offset;
    if (piece >= storage.a.elements.columns) return;
#pragma unroll 1
    for (unsigned left = part.row_mask(panels); left != 0; left &= left - 1)
      multiply_rows(part, lowest_panel(left), piece, storage);
    const unsigned other_rows = ((1U << part.rows) - 1) & ~part.row_mask(panels);
#pragma unroll 1
    for (unsigned left = part.column_mask(panels); left != 0; left &= left - 1)
      multiply_columns(part, lowest_panel(left), other_rows, piece, storage);
  }
}

// Multiplies the warp's part of all failing tiles, in ascending order of k. A lane finds the panels that fail
// in one of 32 tiles along k.
__device__ void multiply_tiles(const WarpPart& part, int tiles, int depth, FailingStorage& storage) {
  const auto lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 1
  for (int first = 0; first < tiles; first += 32) {
    PanelMask of_lane = 0;
    if (first + lane < tiles)
      of_lane = failing_panels_of_tile(storage.a, 0, first + lane) |
                failing_panels_of_tile(storage.b, part.first_column_panel, first + lane) << warp_panels;
#pragma unroll 1
    for (unsigned left = __ballot_sync(~0U, of_lane != 0 ? 1 : 0); left != 0; left &= left - 1) {
      const int tile = lowest_panel(left);
      multiply_tile(part, __shfl_sync(~0U, of_lane, tile), first + tile, depth, storage);
    }
  }
}

__device__ void clear_sums(FailingStorage& storage) {
  float* sums = &storage.sums[threadIdx.x / 32][0][0][0][0];
#pragma unroll 4
  for (int i = 0; i < warp_panels * warp_panels * 4; ++i) sums[i * 32 + threadIdx.x % 32] = 0;
}

// Stores the warp's sums of panels that have failing tiles.
__device__ void store_failing_sums(const WeightedTileParams& params, const WarpPart& part,
                                   const TileRange& rows, const TileRange& columns,
                                   const FailingStorage& storage) {
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  const FailingSums target(params, item_of_block());
#pragma unroll 1
  for (int pair = 0; pair < part.rows * warp_panels; ++pair) {
    const int row = pair / warp_panels;
    const int column = part.first_column_panel + pair % warp_panels;
    if (pair % warp_panels >= part.columns) continue;
    if ((storage.a.failing_panels >> row & 1U) == 0 && (storage.b.failing_panels >> column & 1U) == 0)
      continue;
    float* first = target.first(rows.first / weighted_tile_rows + row,
                                columns.first / weighted_tile_columns + column, lane);
    const float(&sums)[4][32] = storage.sums[threadIdx.x / 32][row][pair % warp_panels];
#pragma unroll
    for (int i = 0; i < 4; ++i) first[FailingSums::offset(i)] = sums[i][lane];
  }
}

// First row and column of a thread block. Successive ones have groups of 32 blocks of rows, so that those
// which run at the same time share rows and columns in the L2 cache.
struct BlockPlace {
  std::int64_t row;
  std::int64_t column;

  __device__ explicit BlockPlace(const WeightedTileParams& params) {
    constexpr std::int64_t group_rows = 32;
    const std::int64_t blocks_of_rows = divide_up(params.tile.rows, failing_rows);
    const std::int64_t blocks_of_columns = divide_up(params.tile.columns, failing_columns);
    const std::int64_t group = blockIdx.x / (group_rows * blocks_of_columns);
    const std::int64_t index = blockIdx.x - group * group_rows * blocks_of_columns;
    const std::int64_t height = min(group_rows, blocks_of_rows - group * group_rows);
    row = (group * group_rows + index % height) * failing_rows;
    column = index / height * failing_columns;
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(failing_threads, failing_blocks)
    multiply_f32_failing_tiles(const __grid_constant__ WeightedTileParams params, int depth) {
  extern __shared__ uint4 memory[];
  begin_dependent_kernel();
  if (!holds(params.tile.condition, item_of_block())) return;
  const BlockPlace place(params);
  const TileRange rows{place.row, failing_rows};
  const TileRange columns{place.column, failing_columns};
  const FailingSide a = rows_of(params, item_of_block(), rows);
  const FailingSide b = columns_of(params, item_of_block(), columns);
  if ((a.failing_panels | b.failing_panels) == 0) return;
  FailingStorage& storage = *reinterpret_cast<FailingStorage*>(memory);
  const WarpPart part(a, b);
  if (threadIdx.x == 0) {
    storage.a = a;
    storage.b = b;
  }
  load_scales(a, storage.row_scales, failing_rows);
  load_scales(b, storage.column_scales, failing_columns);
  clear_sums(storage);
  __syncthreads();
  multiply_tiles(part, params.tiles_of_vector, depth, storage);
  store_failing_sums(params, part, rows, columns, storage);
}

}  // namespace kintsugi::core::cuda
