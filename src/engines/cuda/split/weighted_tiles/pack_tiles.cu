// Split into int8 segments with exponents per tile (docs/schemes/mixpert.md, sections 1 and 2). The operand
// may have any layout; its ranges must be known. A thread block reads 256 inner indices of 32 vectors once
// into shared memory and finds the exponents of the tiles. Then it writes all segments, four inner indices of
// a vector at a time.
#include "arith/tile_arithmetic.hpp"
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/recombine/tile.cuh"
#include "engines/cuda/select/report.cuh"
#include "engines/cuda/split/weighted_tiles/pack_task.hpp"

namespace kintsugi::core::cuda {

namespace {

constexpr int warps = pack_threads / 32;
constexpr int warp_length = 32;  // inner indices of a warp: as many as the shallowest tile has
static_assert(warps * warp_length == pack_length);
constexpr int max_panels = pack_vectors / 8;  // a panel has at least 8 vectors

// In one access a warp reads four of the 32 vectors; eight lanes share a vector's 32 inner indices.
constexpr int vectors_at_once = 4;
constexpr int indices_of_lane = 4;

struct PackStorage {
  // One element of padding per vector avoids bank conflicts of accesses along vectors and across them.
  float element[pack_vectors][pack_length + 1];
  // Largest exponent, sum of exponents and number of non-zero elements, for the inner indices of each warp
  // and for each panel.
  std::int32_t largest[warps][max_panels];
  std::int32_t sum[warps][max_panels];
  std::int32_t elements[warps][max_panels];
  std::int32_t panel_exponent[max_panels];
  // Exponent of the tile of the warp's inner indices. TileExponent::none: its segments are zero.
  std::int32_t exponent[warps][max_panels];
};

// Part of an operand that a thread block splits: pack_length inner indices from `begin` on, of pack_vectors
// vectors.
struct PackPart {
  std::int64_t first_vector;
  std::int64_t begin;
};

// True if none of the batch items that the split serves has selected the split's candidate.
__device__ bool is_unneeded(const PackTask& task) {
  if (task.condition.selection == nullptr) return false;
  if (task.served_items == 1) return !holds(task.condition, item_of_block());
  bool is_selected = false;
  for (std::int64_t item = threadIdx.x; item < task.served_items; item += blockDim.x)
    is_selected = is_selected || holds(task.condition, item);
  return __syncthreads_or(is_selected ? 1 : 0) == 0;
}

// Loads the part. Elements beyond the operand, NaN and infinities become zero. Neighboring threads read along
// the smaller stride.
__device__ void load_part(const PackTask& task, const PackPart& part, PackStorage& storage) {
  const DeviceMatrix& matrix = task.matrix;
  const float* start = matrix_start<float>(matrix, task.item + item_of_block());
  const bool along_k = abs(matrix.column_stride) <= abs(matrix.row_stride);
#pragma unroll 8
  for (int i = 0; i < pack_vectors * pack_length / pack_threads; ++i) {
    const int e = static_cast<int>(threadIdx.x) + i * pack_threads;
    const int v = along_k ? e / pack_length : e % pack_vectors;
    const int p = along_k ? e % pack_length : e / pack_vectors;
    float x = 0;
    if (part.first_vector + v < task.vectors && part.begin + p < task.length) {
      x = start[(task.first + part.first_vector + v) * matrix.row_stride +
                (part.begin + p) * matrix.column_stride];
    }
    storage.element[v][p] = x - x == 0.0F ? x : 0.0F;
  }
}

// Finds the exponents of the part's panels. If the part has the vectors' first elements, also stores the
// vectors' scales. The first warp calls it, with a lane for each vector.
__device__ void find_panel_exponents(const PackTask& task, const PackPart& part, PackStorage& storage) {
  constexpr int none = std::numeric_limits<std::int32_t>::min();
  const auto v = static_cast<int>(threadIdx.x);
  const bool inside = part.first_vector + v < task.vectors;
  VectorRange* range = task.ranges + item_of_block() * task.item_ranges + part.first_vector + v;
  int exponent = inside && (range->flags & VectorRange::all_zero) == 0 ? range->raised : none;
#pragma unroll
  for (int distance = 1; distance < 16; distance *= 2) {
    const int other = __shfl_xor_sync(~0U, exponent, distance);
    if (distance < task.tile_vectors) exponent = max(exponent, other);
  }
  if (exponent == none) exponent = 0;
  if (v % task.tile_vectors == 0) storage.panel_exponent[v / task.tile_vectors] = exponent;
  if (inside && part.begin == 0) range->scale = -exponent;
}

// Finds the warp's contribution to the depth of each tile (TileExponentSum), panel by panel.
__device__ void find_depths(const PackTask& task, PackStorage& storage) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int p = warp * warp_length + lane % 8 * indices_of_lane;
#pragma unroll 1
  for (int panel = 0; panel < pack_vectors / task.tile_vectors; ++panel) {
    int largest = TileExponent::none;
    int sum = 0;
    int elements = 0;
#pragma unroll 1
    for (int i = 0; i < task.tile_vectors; i += vectors_at_once) {
      const int v = panel * task.tile_vectors + i + lane / 8;
#pragma unroll
      for (int e = 0; e < indices_of_lane; ++e) {
        const float x = storage.element[v][p + e];
        if (x == 0.0F) continue;
        const int exponent = rounded_exponent(x, task.segments);
        largest = max(largest, exponent);
        sum += exponent;
        ++elements;
      }
    }
    largest = __reduce_max_sync(~0U, largest);
    sum = __reduce_add_sync(~0U, sum);
    elements = __reduce_add_sync(~0U, elements);
    if (lane == 0) {
      storage.largest[warp][panel] = largest;
      storage.sum[warp][panel] = sum;
      storage.elements[warp][panel] = elements;
    }
  }
}

// Finds the exponent and the weight of one tile and tests Eq. 9. One thread calls it. tile_index and panel
// are counted from the part's first tile and panel. A tile that fails Eq. 9 gets the weight -0; an empty tile
// gets +0.
__device__ void finish_tile(const PackTask& task, const PackPart& part, PackStorage& storage, int tile_index,
                            int panel) {
  const int tile_warps = task.tile_depth / warp_length;
  TileExponentSum depth;
  for (int w = tile_index * tile_warps; w < (tile_index + 1) * tile_warps; ++w) {
    depth.largest = max(depth.largest, storage.largest[w][panel]);
    depth.sum += storage.sum[w][panel];
    depth.elements += storage.elements[w][panel];
  }
  const bool fails = depth.elements > 0 && depth.exceeds(task.mean_depth_limit);
  const int exponent = depth.elements == 0 || fails ? TileExponent::none : depth.largest;
  for (int w = tile_index * tile_warps; w < (tile_index + 1) * tile_warps; ++w)
    storage.exponent[w][panel] = exponent;
  const std::int64_t tile = part.begin / task.tile_depth + tile_index;
  if (tile >= task.tiles) return;
  const std::int64_t panel_index = part.first_vector / task.tile_vectors + panel;
  const float weight =
      exponent == TileExponent::none ? 0.0F : tile_weight(exponent - storage.panel_exponent[panel]);
  task.weights[(item_of_block() * task.tiles + tile) * task.panels + panel_index] = fails ? -0.0F : weight;
  if (fails) atomicAdd(task.failures + item_of_block() * task.panels + panel_index, 1);
}

// |x| 2^shift, rounded to nearest, ties to even, with the result of tile_integer(). x is multiplied by two
// factors of 2^shift that are normal numbers, so only the conversion rounds. (A subnormal product is rounded
// before, but the conversion gives 0 for it anyway.)
__device__ std::uint32_t scaled_integer(float x, int shift) {
  const int first = min(shift, 127);
  const float scaled = fabsf(x) * __int_as_float((first + 127) << 23);
  return __float2uint_rn(scaled * __int_as_float((shift - first + 127) << 23));
}

// Writes the segments of all vectors of the part, for the warp's inner indices.
__device__ void write_segments(const PackTask& task, const PackPart& part, const PackStorage& storage) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int p = warp * warp_length + lane % 8 * indices_of_lane;
  if (part.begin + p >= task.vector_stride) return;
#pragma unroll 2
  for (int i = 0; i < pack_vectors; i += vectors_at_once) {
    const int v = i + lane / 8;
    const int exponent = storage.exponent[warp][v / task.tile_vectors];
    const bool is_zero = exponent == TileExponent::none;
    const int shift = task.segments * segment_bits - 1 - (is_zero ? 0 : exponent);
    std::uint32_t integers[indices_of_lane];
    bool negative[indices_of_lane];
#pragma unroll
    for (int e = 0; e < indices_of_lane; ++e) {
      const float x = is_zero ? 0.0F : storage.element[v][p + e];
      integers[e] = scaled_integer(x, shift);
      negative[e] = x < 0;
    }
    std::int8_t* target = task.slices + item_of_block() * task.item_bytes +
                          (part.first_vector + v) * task.vector_stride + part.begin + p;
#pragma unroll 1
    for (int s = 0; s < task.segments; ++s, target += task.slice_stride) {
      std::uint32_t word = 0;
#pragma unroll
      for (int e = 0; e < indices_of_lane; ++e) {
        const std::int8_t segment = tile_segment(integers[e], negative[e], task.segments, s);
        word |= std::uint32_t{static_cast<std::uint8_t>(segment)} << (8 * e);
      }
      *reinterpret_cast<std::uint32_t*>(target) = word;
    }
  }
}

// Adds one item's tiles of an operand to the counts. All threads of the thread block must call it together.
__device__ void add_panels(const CountedPanels& counted, TileCounts& counts) {
  if (counted.failures == nullptr) return;
  const std::int32_t* failures = counted.failures + item_of_block() * counted.item_panels;
  std::int64_t failing = 0;
  for (std::int64_t panel = threadIdx.x; panel < counted.panels; panel += count_threads)
    failing += failures[panel];
  if (failing != 0) count(counts.failing, failing);
  if (threadIdx.x == 0) count(counts.tiles, counted.panels * counted.tiles);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(pack_threads) pack_tiles(const __grid_constant__ PackTask task) {
  begin_dependent_kernel();
  if (is_unneeded(task)) return;
  __shared__ PackStorage storage;
  const auto block = static_cast<std::int64_t>(blockIdx.x);
  const PackPart part{block % task.vector_groups * pack_vectors, block / task.vector_groups * pack_length};
  load_part(task, part, storage);
  if (threadIdx.x < 32) find_panel_exponents(task, part, storage);
  __syncthreads();
  find_depths(task, storage);
  __syncthreads();
  const int panels = pack_vectors / task.tile_vectors;
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread < panels * (pack_length / task.tile_depth))
    finish_tile(task, part, storage, thread / panels, thread % panels);
  __syncthreads();
  write_segments(task, part, storage);
}

extern "C" __global__ void __launch_bounds__(count_threads)
    count_tiles(const __grid_constant__ CountTask task) {
  begin_dependent_kernel();
  if (!holds(task.condition, item_of_block())) return;
  add_panels(task.a, task.report->tiles_a);
  add_panels(task.b, task.report->tiles_b);
}

}  // namespace kintsugi::core::cuda
