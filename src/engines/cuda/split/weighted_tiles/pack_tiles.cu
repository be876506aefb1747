// Split into int8 segments with exponents per tile (docs/schemes/mixpert.md, sections 1 and 2). The operand
// may have any layout; its ranges must be known. A thread block reads 256 inner indices of 32 vectors once,
// each warp 32 of these indices, into registers; elements pass through shared memory if lanes cannot read
// four of them at once. Then it finds the exponents of the tiles and writes all segments, four inner indices
// of a vector at a time.
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

// Eight lanes share a vector's 32 inner indices, four each, so that a warp has four vectors at once.
constexpr int vectors_at_once = 4;
constexpr int indices_of_lane = 4;
constexpr int steps = pack_vectors / vectors_at_once;

// A lane's elements: those of vector 4 step + lane / 8 at the inner indices 4 (lane % 8) + e of its warp.
struct LaneElements {
  float of_step[steps][indices_of_lane];
};

struct PackStorage {
  // A vector has four elements of padding, so that accesses of 16 bytes along vectors and across them have no
  // bank conflicts.
  alignas(16) float element[warps][pack_vectors][warp_length + 4];
  // Largest exponent, sum of exponents and number of non-zero elements, for each warp's inner indices and
  // each panel.
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

// Elements of one operand that a warp splits.
struct WarpElements {
  const float* first;  // of its first vector and inner index
  std::int64_t vector_stride;
  std::int64_t index_stride;
  int vectors;  // inside the operand
  int indices;

  __device__ WarpElements(const PackTask& task, const PackPart& part)
      : vector_stride(task.matrix.row_stride), index_stride(task.matrix.column_stride) {
    const std::int64_t begin = part.begin + threadIdx.x / 32 * warp_length;
    first = matrix_start<float>(task.matrix, task.item + item_of_block()) +
            (task.first + part.first_vector) * vector_stride + begin * index_stride;
    vectors = clamp(task.vectors - part.first_vector, pack_vectors);
    indices = clamp(task.length - begin, warp_length);
  }

  // True if each lane can read its four elements at once.
  __device__ bool has_aligned_fours() const {
    return index_stride == 1 && vector_stride % indices_of_lane == 0 && vectors == pack_vectors &&
           indices == warp_length && reinterpret_cast<std::uintptr_t>(first) % sizeof(float4) == 0;
  }

 private:
  __device__ static int clamp(std::int64_t left, int all) {
    return static_cast<int>(max(std::int64_t{0}, min(left, std::int64_t{all})));
  }
};

__device__ void store_four(const float4& four, float (&elements)[indices_of_lane]) {
  elements[0] = four.x;
  elements[1] = four.y;
  elements[2] = four.z;
  elements[3] = four.w;
}

__device__ void load_fours(const WarpElements& source, LaneElements& elements) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float* first = source.first + lane / 8 * source.vector_stride + lane % 8 * indices_of_lane;
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    store_four(*reinterpret_cast<const float4*>(first), elements.of_step[step]);
    first += vectors_at_once * source.vector_stride;
  }
}

// Loads elements in the order of memory and passes them through shared memory; those beyond the operand are
// zero. Neighboring lanes read along the smaller stride.
__device__ void load_by_lanes(const WarpElements& source, float (&shared)[pack_vectors][warp_length + 4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool along_k = abs(source.index_stride) <= abs(source.vector_stride);
  if (along_k) {
    const float* element = source.first + lane * source.index_stride;
#pragma unroll 8
    for (int v = 0; v < pack_vectors; ++v, element += source.vector_stride)
      shared[v][lane] = v < source.vectors && lane < source.indices ? *element : 0.0F;
    return;
  }
  const float* element = source.first + lane * source.vector_stride;
#pragma unroll 4
  for (int p = 0; p < warp_length; p += indices_of_lane) {
    float four[indices_of_lane];
#pragma unroll
    for (int e = 0; e < indices_of_lane; ++e, element += source.index_stride)
      four[e] = lane < source.vectors && p + e < source.indices ? *element : 0.0F;
    *reinterpret_cast<float4*>(&shared[lane][p]) = {four[0], four[1], four[2], four[3]};
  }
}

// Loads the warp's elements; those beyond the operand, NaN and infinities become zero.
__device__ void load_elements(const PackTask& task, const PackPart& part, PackStorage& storage,
                              LaneElements& elements) {
  const WarpElements source(task, part);
  if (source.has_aligned_fours()) {
    load_fours(source, elements);
  } else {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    auto& shared = storage.element[threadIdx.x / 32];
    load_by_lanes(source, shared);
    __syncwarp();
#pragma unroll
    for (int step = 0; step < steps; ++step)
      store_four(*reinterpret_cast<const float4*>(
                     &shared[step * vectors_at_once + lane / 8][lane % 8 * indices_of_lane]),
                 elements.of_step[step]);
  }
#pragma unroll
  for (auto& four : elements.of_step) {
#pragma unroll
    for (float& x : four) x = x - x == 0.0F ? x : 0.0F;
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

// Panel of a step's vectors. Tiles have 8 vectors or 16.
__device__ int panel_of(int step, int tile_vectors) {
  return tile_vectors == 8 ? step * vectors_at_once / 8 : step * vectors_at_once / 16;
}

// Exponent of |x|, not zero, rounded to the segments; `magnitude` has the bits of |x|, and `half` is half a
// unit of the last segment in the significand. For subnormal numbers rounded_exponent() finds it.
__device__ int exponent_of_bits(float x, std::uint32_t magnitude, std::uint32_t half, int segments) {
  constexpr std::uint32_t smallest_normal = 0x800000;
  if (magnitude < smallest_normal) return rounded_exponent(x, segments);
  return static_cast<int>((magnitude + half) >> 23) - 127;
}

// Finds the warp's contribution to the depth of each tile (TileExponentSum), panel by panel.
__device__ void find_depths(const PackTask& task, const LaneElements& lane_elements, PackStorage& storage) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int dropped = 24 - task.segments * segment_bits;
  const std::uint32_t half = dropped > 0 ? 1U << (dropped - 1) : 0U;
  int largest = TileExponent::none;
  int sum = 0;
  int elements = 0;
#pragma unroll
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (const float x : lane_elements.of_step[step]) {
      const std::uint32_t magnitude = __float_as_uint(x) & 0x7fffffffU;
      if (magnitude == 0) continue;
      const int exponent = exponent_of_bits(x, magnitude, half, task.segments);
      largest = max(largest, exponent);
      sum += exponent;
      ++elements;
    }
    if (((step + 1) * vectors_at_once & (task.tile_vectors - 1)) != 0) continue;
    largest = __reduce_max_sync(~0U, largest);
    sum = __reduce_add_sync(~0U, sum);
    elements = __reduce_add_sync(~0U, elements);
    if (threadIdx.x % 32 == 0) {
      const int panel = panel_of(step, task.tile_vectors);
      storage.largest[warp][panel] = largest;
      storage.sum[warp][panel] = sum;
      storage.elements[warp][panel] = elements;
    }
    largest = TileExponent::none;
    sum = 0;
    elements = 0;
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

// Segments of four neighboring elements of a vector, one word for each segment, the leading one first.
template <int Segments>
struct SegmentWords {
  std::uint32_t words[Segments];

  // `integers` are the elements' tile integers. Bytes are gathered from all four, and those of negative
  // elements negated, all bytes of a word at once: a byte is at most 127, so that no carry leaves it.
  __device__ SegmentWords(const std::uint32_t (&integers)[4], const float (&elements)[4]) {
    std::uint32_t spread[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) spread[e] = spread_segments(integers[e]);
    const std::uint32_t low_x = __byte_perm(spread[0], spread[1], 0x5140);
    const std::uint32_t low_y = __byte_perm(spread[2], spread[3], 0x5140);
    words[Segments - 1] = __byte_perm(low_x, low_y, 0x5410);
    words[Segments - 2] = __byte_perm(low_x, low_y, 0x7632);
    if constexpr (Segments > 2) {
      const std::uint32_t high_x = __byte_perm(spread[0], spread[1], 0x7362);
      const std::uint32_t high_y = __byte_perm(spread[2], spread[3], 0x7362);
      words[Segments - 3] = __byte_perm(high_x, high_y, 0x5410);
      if constexpr (Segments > 3) words[0] = __byte_perm(high_x, high_y, 0x7632);
    }
    const std::uint32_t signs = sign_bytes(elements);
#pragma unroll
    for (std::uint32_t& word : words)
      word = (((word ^ signs) & 0x7f7f7f7fU) + (signs & 0x01010101U)) ^ (signs & 0x80808080U);
  }

 private:
  // Segments in bytes, the last one in byte 0.
  __device__ static std::uint32_t spread_segments(std::uint32_t integer) {
    std::uint32_t bytes = (integer & 0x7fU) | (integer << 1 & 0x7f00U);
    if constexpr (Segments > 2) bytes |= integer << 2 & 0x7f0000U;
    if constexpr (Segments > 3) bytes |= integer << 3 & 0x7f000000U;
    return bytes;
  }

  // Bytes that are 0xff where the element is negative, else 0.
  __device__ static std::uint32_t sign_bytes(const float (&elements)[4]) {
    return __byte_perm(signs_of(elements[0], elements[1]), signs_of(elements[2], elements[3]), 0x5410);
  }

  // Bytes 0 and 1 are the signs of x and y, eight times each.
  __device__ static std::uint32_t signs_of(float x, float y) {
    std::uint32_t signs;
    asm("prmt.b32 %0, %1, %2, 0x00fb;" : "=r"(signs) : "r"(__float_as_uint(x)), "r"(__float_as_uint(y)));
    return signs;
  }
};

// Writes the segments of all vectors of the part, for the warp's inner indices.
template <int Segments>
__device__ void write_segments(const PackTask& task, const PackPart& part, const LaneElements& elements,
                               const PackStorage& storage) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int p = warp * warp_length + lane % 8 * indices_of_lane;
  if (part.begin + p >= task.vector_stride) return;
  std::int8_t* target = task.slices + item_of_block() * task.item_bytes +
                        (part.first_vector + lane / 8) * task.vector_stride + part.begin + p;
#pragma unroll
  for (int step = 0; step < steps; ++step, target += vectors_at_once * task.vector_stride) {
    const int exponent = storage.exponent[warp][panel_of(step, task.tile_vectors)];
    const bool is_zero = exponent == TileExponent::none;
    const int shift = Segments * segment_bits - 1 - (is_zero ? 0 : exponent);
    std::uint32_t integers[indices_of_lane];
#pragma unroll
    for (int e = 0; e < indices_of_lane; ++e)
      integers[e] = is_zero ? 0U : scaled_integer(elements.of_step[step][e], shift);
    const SegmentWords<Segments> segments(integers, elements.of_step[step]);
    std::int8_t* slice = target;
#pragma unroll
    for (const std::uint32_t word : segments.words) {
      *reinterpret_cast<std::uint32_t*>(slice) = word;
      slice += task.slice_stride;
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

extern "C" __global__ void __launch_bounds__(pack_threads, 4)
    pack_tiles(const __grid_constant__ PackTask task) {
  begin_dependent_kernel();
  if (is_unneeded(task)) return;
  __shared__ PackStorage storage;
  const auto block = static_cast<std::int64_t>(blockIdx.x);
  const PackPart part{block % task.vector_groups * pack_vectors, block / task.vector_groups * pack_length};
  LaneElements elements;
  load_elements(task, part, storage, elements);
  if (threadIdx.x < 32) find_panel_exponents(task, part, storage);
  find_depths(task, elements, storage);
  __syncthreads();
  const int panels = pack_vectors / task.tile_vectors;
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread < panels * (pack_length / task.tile_depth))
    finish_tile(task, part, storage, thread / panels, thread % panels);
  __syncthreads();
  if (task.segments == 2) write_segments<2>(task, part, elements, storage);
  if (task.segments == 3) write_segments<3>(task, part, elements, storage);
  if (task.segments == 4) write_segments<4>(task, part, elements, storage);
}

extern "C" __global__ void __launch_bounds__(count_threads)
    count_tiles(const __grid_constant__ CountTask task) {
  begin_dependent_kernel();
  if (!holds(task.condition, item_of_block())) return;
  add_panels(task.a, task.report->tiles_a);
  add_panels(task.b, task.report->tiles_b);
}

}  // namespace kintsugi::core::cuda
