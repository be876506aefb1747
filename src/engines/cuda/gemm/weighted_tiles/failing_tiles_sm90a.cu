// Products of tiles that fail Eq. 9 (docs/schemes/mixpert.md, section 4). This kernel runs before the GEMM
// kernel of the other tiles, whose epilogue adds the sums. A thread block has 128 rows and 64 columns of C.
// For every tile along k that fails in its rows or columns, it decodes the elements that take part in that
// tile's products into shared memory, once each and 32 inner indices at a time. Then its warps multiply them.
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/gemm/epilogue.cuh"
#include "engines/cuda/gemm/weighted_tiles/failing_sums.cuh"
#include "engines/cuda/gemm/weighted_tiles/half_precision.cuh"

namespace kintsugi::core::cuda {

namespace {

constexpr int warps = failing_threads / 32;
constexpr int panels_of_side = 8;  // of a thread block's rows, and of its columns
static_assert(failing_rows == panels_of_side * weighted_tile_rows);
static_assert(failing_columns == panels_of_side * weighted_tile_columns);
static_assert(warps == panels_of_side + 1);

// Panels of the thread block that fail, one bit each.
struct PanelMasks {
  unsigned rows;
  unsigned columns;

  __device__ bool any() const { return (rows | columns) != 0; }
};

struct FailingStorage {
  Fp16RowPiece<panels_of_side> rows;
  Fp16ColumnPiece<panels_of_side> columns;
  float sums[panels_of_side][panels_of_side][4][32];  // of panels of rows and columns; FailingSums::offset()
  int row_scales[failing_rows];
  int column_scales[failing_columns];
  PanelMasks panels[failing_threads];  // of successive tiles along k
  std::uint32_t failing_tiles[warps];  // bit t of word w: tile 32 w + t fails in a panel
};
static_assert(sizeof(FailingStorage) <= failing_shared_bytes);

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

// Bits of the panels whose number of failing tiles is not 0. Every warp calls it.
__device__ unsigned find_failing_panels(const std::int32_t* failures, int count, int panel_vectors) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool exists = lane < panels_of_side && lane * panel_vectors < count;
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
          find_failing_panels(params.failures_a + slices_item * params.panels_a + panel, count,
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
          find_failing_panels(params.failures_b + slices_item * params.panels_b + panel, count,
                              weighted_tile_columns)};
}

// The scale of a vector with NaN or infinities is replaced by 0: no element of C uses that vector's sums.
__device__ void load_scales(const FailingSide& side, int* scales, int vectors) {
  for (int v = static_cast<int>(threadIdx.x); v < vectors; v += failing_threads) {
    const int scale = v < side.count ? scale_of(side.ranges[v]) : 0;
    scales[v] = scale == special_scale ? 0 : scale;
  }
}

// Panels whose tile `tile` fails, which its weight -0 says.
__device__ unsigned failing_panels_of_tile(const FailingSide& side, std::int64_t tile) {
  const auto* weights = reinterpret_cast<const float4*>(side.weights + tile * side.panels);
  unsigned mask = 0;
#pragma unroll
  for (int four = 0; four < panels_of_side / 4; ++four) {
    const float4 weight = __ldcg(weights + four);
    const float each[4]{weight.x, weight.y, weight.z, weight.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) mask |= __float_as_uint(each[i]) >> 31 << (4 * four + i);
  }
  return mask & side.failing_panels;
}

// Finds the tiles along k, failing_threads from `first` on, that fail in a panel.
__device__ void find_failing_tiles(const FailingSide& a, const FailingSide& b, std::int64_t first,
                                   std::int64_t tiles, FailingStorage& storage) {
  const auto thread = static_cast<int>(threadIdx.x);
  const std::int64_t tile = first + thread;
  PanelMasks masks{};
  if (tile < tiles) masks = {failing_panels_of_tile(a, tile), failing_panels_of_tile(b, tile)};
  storage.panels[thread] = masks;
  const unsigned failing = __ballot_sync(~0U, masks.any() ? 1 : 0);
  if (thread % 32 == 0) storage.failing_tiles[thread / 32] = failing;
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

// 32 inner indices of a tile that fails.
struct Piece {
  static constexpr std::int64_t none = -1;  // begin behind the last piece

  std::int64_t begin = none;
  PanelMasks masks;
  unsigned panels_of_warp;  // that the warp decodes: panels of rows, then of columns

  __device__ bool exists() const { return begin != none; }
};

// Panels that the products of a tile need, divided among the warps: all panels of rows if one of columns
// fails, else those that fail, and panels of columns likewise. If one panel fails, each warp has one.
__device__ unsigned find_panels_of_warp(const PanelMasks& masks) {
  constexpr unsigned all_panels = (1U << panels_of_side) - 1;
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  const auto warp = static_cast<int>(threadIdx.x) / 32;
  const unsigned rows = masks.columns != 0 ? all_panels : masks.rows;
  const unsigned columns = masks.rows != 0 ? all_panels : masks.columns;
  const unsigned needed = rows | columns << panels_of_side;
  const int rank = __popc(needed & ((1U << lane) - 1));
  return __ballot_sync(~0U, (needed >> lane & 1U) != 0 && rank % warps == warp ? 1 : 0);
}

// Iterates over the pieces of the tiles that find_failing_tiles() has found, in ascending order of k.
class FailingPieces {
 public:
  __device__ FailingPieces(const FailingStorage& storage, std::int64_t first_tile, int depth, std::int64_t k)
      : storage_(storage), first_tile_(first_tile), depth_(depth), k_(k), left_(storage.failing_tiles[0]) {}

  // Returns the next piece, or one that does not exist; then it is not called again.
  __device__ Piece next() {
    begin_ += half_piece;
    if (begin_ >= end_) begin_tile();
    return {begin_, masks_, panels_of_warp_};
  }

 private:
  __device__ void begin_tile() {
    while (left_ == 0) {
      if (++word_ == warps) {
        begin_ = Piece::none;
        return;
      }
      left_ = storage_.failing_tiles[word_];
    }
    const int tile = word_ * 32 + __ffs(static_cast<int>(left_)) - 1;
    left_ &= left_ - 1;
    masks_ = storage_.panels[tile];
    panels_of_warp_ = find_panels_of_warp(masks_);
    begin_ = (first_tile_ + tile) * depth_;
    end_ = min(begin_ + depth_, k_);
  }

  const FailingStorage& storage_;
  std::int64_t first_tile_;
  int depth_;
  std::int64_t k_;
  int word_ = 0;
  unsigned left_;  // tiles of the word that are still to come
  PanelMasks masks_{};
  unsigned panels_of_warp_ = 0;
  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
};

// A thread's elements of one panel: of two rows, or of one column.
struct PanelElements {
  float low[half_elements];
  float high[half_elements];
};

// Number of the first panel of a mask; negative if it has none.
__device__ int first_panel(unsigned panels) { return __ffs(static_cast<int>(panels)) - 1; }

__device__ void read_panel(const FailingSide& a, const FailingSide& b, int panel, std::int64_t piece,
                           PanelElements& elements) {
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  if (panel < panels_of_side) {
    const int v = panel * weighted_tile_rows + lane / 4;
    read_elements(a, v, piece, elements.low);
    read_elements(a, v + 8, piece, elements.high);
  } else {
    read_elements(b, (panel - panels_of_side) * weighted_tile_columns + lane / 4, piece, elements.low);
  }
}

__device__ void decode_panel(const PanelElements& elements, int panel, FailingStorage& storage) {
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  if (panel < panels_of_side) {
    const int* scales = storage.row_scales + panel * weighted_tile_rows + lane / 4;
    store_rows_of_panel(storage.rows, panel, Fp16Vector(elements.low, -scales[0]),
                        Fp16Vector(elements.high, -scales[8]));
  } else {
    const int* scales = storage.column_scales + (panel - panels_of_side) * weighted_tile_columns + lane / 4;
    store_columns_of_panel(storage.columns, panel - panels_of_side, Fp16Vector(elements.low, -scales[0]));
  }
}

__device__ void add_to_sums(float (&sums)[4][32], const FailingStorage& storage, int row_panel,
                            const Fp16Columns& columns) {
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  float lane_sums[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) lane_sums[i] = sums[i][lane];
  add_half_piece(lane_sums, storage.rows, row_panel, columns);
#pragma unroll
  for (int i = 0; i < 4; ++i) sums[i][lane] = lane_sums[i];
}

// Multiplies a piece. A warp has one panel of columns for the failing panels of rows, and one panel of rows
// for the failing panels of columns, so that a single failing panel occupies all warps but the last one,
// which only decodes.
__device__ void multiply_piece(const PanelMasks& masks, FailingStorage& storage) {
  const auto warp = static_cast<int>(threadIdx.x) / 32;
  if (warp == panels_of_side) return;
  if (masks.rows != 0) {
    const Fp16Columns columns(storage.columns, warp);
#pragma unroll 1
    for (unsigned left = masks.rows; left != 0; left &= left - 1)
      add_to_sums(storage.sums[first_panel(left)][warp], storage, first_panel(left), columns);
  }
  if ((masks.rows >> warp & 1U) != 0) return;
#pragma unroll 1
  for (unsigned left = masks.columns; left != 0; left &= left - 1) {
    const Fp16Columns columns(storage.columns, first_panel(left));
    add_to_sums(storage.sums[warp][first_panel(left)], storage, warp, columns);
  }
}

// Multiplies all failing tiles that find_failing_tiles() has found. A warp reads the elements of its first
// panel of the next piece while it multiplies.
__device__ void multiply_tiles(const FailingSide& a, const FailingSide& b, std::int64_t first_tile, int depth,
                               FailingStorage& storage) {
  FailingPieces pieces(storage, first_tile, depth, a.elements.columns);
  Piece piece = pieces.next();
  PanelElements elements;
  const auto read_first = [&](const Piece& of) {
    if (of.exists() && of.panels_of_warp != 0)
      read_panel(a, b, first_panel(of.panels_of_warp), of.begin, elements);
  };
  read_first(piece);
#pragma unroll 1
  while (piece.exists()) {
    unsigned left = piece.panels_of_warp;
    if (left != 0) decode_panel(elements, first_panel(left), storage);
#pragma unroll 1
    for (left &= left - 1; left != 0; left &= left - 1) {
      read_panel(a, b, first_panel(left), piece.begin, elements);
      decode_panel(elements, first_panel(left), storage);
    }
    const Piece next = pieces.next();
    __syncthreads();
    read_first(next);
    multiply_piece(piece.masks, storage);
    __syncthreads();
    piece = next;
  }
}

// Stores the sums of panels that have failing tiles. Every warp has one panel of rows.
__device__ void store_failing_sums(const WeightedTileParams& params, const FailingSide& a,
                                   const FailingSide& b, const TileRange& rows, const TileRange& columns,
                                   const FailingStorage& storage) {
  const auto warp = static_cast<int>(threadIdx.x) / 32;
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  if (warp == panels_of_side || warp * weighted_tile_rows >= a.count) return;
  const FailingSums target(params, item_of_block());
  for (int panel = 0; panel * weighted_tile_columns < b.count; ++panel) {
    if ((a.failing_panels >> warp & 1U) == 0 && (b.failing_panels >> panel & 1U) == 0) continue;
    float* first = target.first(rows.first / weighted_tile_rows + warp,
                                columns.first / weighted_tile_columns + panel, lane);
#pragma unroll
    for (int i = 0; i < 4; ++i) first[FailingSums::offset(i)] = storage.sums[warp][panel][i][lane];
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(failing_threads, 2)
    multiply_failing_tiles(const __grid_constant__ WeightedTileParams params, int depth) {
  extern __shared__ uint4 memory[];
  begin_dependent_kernel();
  if (!holds(params.tile.condition, item_of_block())) return;
  const std::int64_t blocks = divide_up(params.tile.rows, failing_rows);
  const TileRange rows{blockIdx.x % blocks * failing_rows, failing_rows};
  const TileRange columns{blockIdx.x / blocks * failing_columns, failing_columns};
  const FailingSide a = rows_of(params, item_of_block(), rows);
  const FailingSide b = columns_of(params, item_of_block(), columns);
  if ((a.failing_panels | b.failing_panels) == 0) return;
  FailingStorage& storage = *reinterpret_cast<FailingStorage*>(memory);
  load_scales(a, storage.row_scales, failing_rows);
  load_scales(b, storage.column_scales, failing_columns);
  float* sums = &storage.sums[0][0][0][0];
  for (int i = static_cast<int>(threadIdx.x); i < failing_rows * failing_columns; i += failing_threads)
    sums[i] = 0;
#pragma unroll 1
  for (std::int64_t first = 0; first < params.tiles_of_vector; first += failing_threads) {
    find_failing_tiles(a, b, first, params.tiles_of_vector, storage);
    __syncthreads();
    multiply_tiles(a, b, first, depth, storage);
    __syncthreads();
  }
  store_failing_sums(params, a, b, rows, columns, storage);
}

}  // namespace kintsugi::core::cuda
