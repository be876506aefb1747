// Split into int8 segments with exponents per tile (docs/schemes/mixpert.md, sections 1 and 2). The operand
// may have any layout, and it is read once. A thread block has 256 inner indices of 32 vectors, each warp 32
// of these indices, in registers; elements pass through shared memory if lanes cannot read four of them at
// once. The thread block finds the exponents of its tiles and writes all segments, four inner indices of a
// vector at a time.
//
// Weights of tiles are relative to the exponents of panels, and those are known only after all of the panels'
// elements have been read. So thread blocks store exponents of tiles, and add to the ranges of their vectors
// by atomic operations. The last thread block of 32 vectors replaces the exponents by weights.
#include "arith/tile_arithmetic.hpp"
#include "engines/cuda/common/condition.cuh"
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/split/pack_tiles.hpp"

namespace kintsugi::core::cuda {

namespace {

// Ranges of vectors and weights of tiles, as thread blocks gather them.

inline constexpr std::uint32_t infinity_bits = 0x7f800000;
inline constexpr std::uint32_t smallest_normal_bits = 0x00800000;

// Part of an operand that a thread block splits: pack_length inner indices from `begin` on, of pack_vectors
// vectors. Successive thread blocks follow the memory's order.
struct PackPart {
  std::int64_t first_vector;
  std::int64_t begin;

  __device__ explicit PackPart(const PackTask& task) {
    const auto block = static_cast<std::int64_t>(blockIdx.x);
    const bool along_k = abs(task.matrix.column_stride) <= abs(task.matrix.row_stride);
    const std::int64_t group = along_k ? block / task.parts : block % task.vector_groups;
    const std::int64_t index = along_k ? block % task.parts : block / task.vector_groups;
    first_vector = group * pack_vectors;
    begin = index * pack_length;
  }
};

// Smallest and largest magnitude of non-zero elements, as bit patterns. 0 and ~0: there are none.
struct VectorMagnitudes {
  std::uint32_t largest = 0;
  std::uint32_t smallest = ~0U;

  __device__ __forceinline__ void add(const VectorMagnitudes& other) {
    largest = max(largest, other.largest);
    smallest = min(smallest, other.smallest);
  }
};

// Smallest and largest of four magnitudes. Zeros count as elements here.
__device__ __forceinline__ VectorMagnitudes magnitudes_of(const float (&magnitudes)[4]) {
  VectorMagnitudes all;
#pragma unroll
  for (int e = 0; e < 4; ++e) all.add({__float_as_uint(magnitudes[e]), __float_as_uint(magnitudes[e])});
  return all;
}

__device__ __forceinline__ std::uint32_t smallest_nonzero(const float (&magnitudes)[4]) {
  std::uint32_t smallest = ~0U;
#pragma unroll
  for (int e = 0; e < 4; ++e) smallest = min(smallest, __float_as_uint(magnitudes[e]) - 1U);
  return smallest + 1U == 0 ? ~0U : smallest + 1U;
}

// Exponents of magnitudes rounded to a number of segments (rounded_exponent()).
struct ExponentRule {
  std::uint32_t half;  // half a unit of the last segment, in the significand

  __device__ explicit ExponentRule(int segments) {
    const int dropped = 24 - segments * segment_bits;
    half = dropped > 0 ? 1U << (dropped - 1) : 0U;
  }
  __device__ __forceinline__ std::uint32_t biased_exponent_of_normal(float magnitude) const {
    return (__float_as_uint(magnitude) + half) >> 23;
  }
  // `magnitude` is not 0. A subnormal number is multiplied by 2^64 first, which makes it normal.
  __device__ __forceinline__ int exponent(float magnitude) const {
    const bool is_normal = __float_as_uint(magnitude) >= smallest_normal_bits;
    const std::uint32_t biased = biased_exponent_of_normal(is_normal ? magnitude : magnitude * 0x1p64F);
    return static_cast<int>(biased) - (is_normal ? 127 : 127 + 64);
  }
};

// Sum of the exponents of non-zero elements, and their number, in one word, so that a warp adds both at once.
// Its elements are at most the 512 of a warp's 16 vectors.
struct DepthSum {
  static constexpr int sum_bits = 18;
  static constexpr int bias = 127 + 32;  // makes all exponents positive, those of subnormal numbers too

  std::uint32_t packed = 0;

  __device__ __forceinline__ void add_normal(const float (&magnitudes)[4], const ExponentRule& rule) {
#pragma unroll
    for (int e = 0; e < 4; ++e) packed += rule.biased_exponent_of_normal(magnitudes[e]);
    packed += 4U * (1U << sum_bits) + 4U * (bias - 127);
  }
  __device__ __forceinline__ void add_any(const float (&magnitudes)[4], const ExponentRule& rule) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const auto exponent = static_cast<std::uint32_t>(rule.exponent(magnitudes[e]) + bias);
      packed += magnitudes[e] == 0.0F ? 0U : (1U << sum_bits) + exponent;
    }
  }
  __device__ void add_to(TileExponentSum& depth) const {
    const std::int64_t elements = packed >> sum_bits;
    depth.elements += elements;
    depth.sum += static_cast<std::int64_t>(packed & ((1U << sum_bits) - 1U)) - elements * bias;
  }
};

// reduce_steps() gives a lane the magnitudes of one of the four steps of each half: that of bits 1 and 2 of
// its number. Bit 0 is left to select one of the two halves.
__device__ inline int step_of_lane(int lane) { return 4 * (lane & 1) + (lane >> 1 & 2) + (lane >> 1 & 1); }

__device__ inline VectorMagnitudes shuffled(const VectorMagnitudes& magnitudes, int lane_bit) {
  return {__shfl_xor_sync(~0U, magnitudes.largest, lane_bit),
          __shfl_xor_sync(~0U, magnitudes.smallest, lane_bit)};
}

// Values are selected, not references, so that both stay in registers.
__device__ inline VectorMagnitudes select(bool is_first, const VectorMagnitudes& first,
                                          const VectorMagnitudes& second) {
  return {is_first ? first.largest : second.largest, is_first ? first.smallest : second.smallest};
}

// Magnitudes over the eight lanes that share a vector, of the step that the lane has. At each exchange a lane
// keeps one half of the steps and gives the other half away.
__device__ __forceinline__ VectorMagnitudes reduce_steps(const VectorMagnitudes (&of_step)[4]) {
  const bool has_upper = (threadIdx.x & 4) != 0;
  VectorMagnitudes kept[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    kept[i] = select(has_upper, of_step[i + 2], of_step[i]);
    kept[i].add(shuffled(select(has_upper, of_step[i], of_step[i + 2]), 4));
  }
  const bool has_odd = (threadIdx.x & 2) != 0;
  VectorMagnitudes mine = select(has_odd, kept[1], kept[0]);
  mine.add(shuffled(select(has_odd, kept[0], kept[1]), 2));
  mine.add(shuffled(mine, 1));
  return mine;
}

// Lane bits in which the lanes of a panel differ: those of step_of_lane() that do not number panels, and
// those of a step's vectors.
__device__ inline int panel_lane_bits(int tile_vectors) { return tile_vectors == 8 ? 0b11010 : 0b11110; }

// Largest of the panel's lanes.
__device__ inline std::uint32_t largest_of_panel(std::uint32_t largest, int tile_vectors) {
  const int bits = panel_lane_bits(tile_vectors);
#pragma unroll
  for (int bit = 2; bit < 32; bit *= 2) {
    const std::uint32_t other = __shfl_xor_sync(~0U, largest, bit);
    if ((bits & bit) != 0) largest = max(largest, other);
  }
  return largest;
}

// Exponents of tiles, as Slices::tile_weights has them until the last thread block replaces them. An empty
// tile has 0, and a tile that fails Eq. 9 has the bits of its weight, -0.
inline constexpr std::int32_t failing_tile = std::numeric_limits<std::int32_t>::min();
inline constexpr int stored_bias = 1024;
__device__ inline std::int32_t stored_exponent(int exponent) { return exponent + stored_bias; }
__device__ inline int exponent_of_stored(std::int32_t stored) { return stored - stored_bias; }

__device__ inline std::int32_t& weight_of(const PackTask& task, std::int64_t tile, std::int64_t panel) {
  return task.weights[(item_of_block() * task.tiles + tile) * task.panels + panel];
}
__device__ inline std::int32_t& failures_of(const PackTask& task, std::int64_t panel) {
  return task.failures[item_of_block() * task.panels + panel];
}
__device__ inline VectorRange& range_of(const PackTask& task, std::int64_t vector) {
  return task.ranges[item_of_block() * task.item_ranges + vector];
}

// Adds magnitudes to a range that was all zeros at first. Until the last thread block calls found_range(),
// `largest` has the bits of the largest magnitude, and `smallest` has infinity's bits minus those of the
// smallest one.
__device__ inline void add_to_range(VectorRange& range, const VectorMagnitudes& magnitudes,
                                    std::uint32_t special) {
  if (special != 0) atomicOr(&range.flags, special);
  if (magnitudes.largest == 0) return;
  atomicMax(&range.largest, static_cast<std::int32_t>(magnitudes.largest));
  atomicMax(&range.smallest, static_cast<std::int32_t>(infinity_bits - magnitudes.smallest));
}

__device__ inline VectorRange found_range(const VectorRange& added) {
  const auto largest = static_cast<std::uint32_t>(__ldcg(&added.largest));
  const std::uint32_t smallest = infinity_bits - static_cast<std::uint32_t>(__ldcg(&added.smallest));
  VectorRange range;
  if (largest != 0) {
    extend(range, __uint_as_float(smallest));
    extend(range, __uint_as_float(largest));
  }
  range.flags |= __ldcg(&added.flags);
  return range;
}

// Stores the scales of the vectors, and their ranges unless these are known, and finds the exponents of their
// panels. The first warp of the last thread block calls it, with a lane for each vector.
__device__ inline void finish_ranges(const PackTask& task, const PackPart& part,
                                     std::int32_t* panel_exponents) {
  constexpr int none = std::numeric_limits<std::int32_t>::min();
  const auto v = static_cast<int>(threadIdx.x);
  const bool is_inside = part.first_vector + v < task.vectors;
  VectorRange range;
  if (is_inside) {
    const VectorRange& stored = range_of(task, part.first_vector + v);
    range = task.ranges_known ? stored : found_range(stored);
  }
  int exponent = (range.flags & VectorRange::all_zero) == 0 ? range.raised : none;
#pragma unroll
  for (int distance = 1; distance < 16; distance *= 2) {
    const int other = __shfl_xor_sync(~0U, exponent, distance);
    if (distance < task.tile_vectors) exponent = max(exponent, other);
  }
  if (exponent == none) exponent = 0;
  if (v % task.tile_vectors == 0) panel_exponents[v / task.tile_vectors] = exponent;
  range.scale = -exponent;
  if (is_inside) range_of(task, part.first_vector + v) = range;
}

// Segments of four neighboring elements of a vector, as words of four bytes.

// Bytes 0 and 1 are the signs of x and y, eight times each.
__device__ inline std::uint32_t signs_of(float x, float y) {
  std::uint32_t signs;
  asm("prmt.b32 %0, %1, %2, 0x00fb;" : "=r"(signs) : "r"(__float_as_uint(x)), "r"(__float_as_uint(y)));
  return signs;
}

// Bytes that are 0xff where the element is negative, else 0.
__device__ inline std::uint32_t sign_bytes(const float (&elements)[4]) {
  return __byte_perm(signs_of(elements[0], elements[1]), signs_of(elements[2], elements[3]), 0x5410);
}

// Elements of tiles with smaller exponents are multiplied by 2^64 first, so that the factor to their integers
// is a normal number.
inline constexpr int least_direct_exponent = -90;

// Factor from elements of a tile with this exponent to their integers. A negative one, after a change of its
// sign, is the factor of elements that are multiplied by 2^64 first.
__device__ inline float segment_factor(int exponent, int segments) {
  const int shift = segments * segment_bits - 1 - exponent;
  if (exponent >= least_direct_exponent) return __int_as_float((shift + 127) << 23);
  return -__int_as_float((shift - 64 + 127) << 23);
}

// Words of the segments of four elements, the leading segment first.
template <int Segments>
struct SegmentWords {
  std::uint32_t words[Segments];

  // `factor` is segment_factor() of the tile, or 0 for a tile whose segments are zero.
  __device__ __forceinline__ SegmentWords(float (&magnitudes)[4], std::uint32_t signs, float factor) {
    if (factor < 0.0F) {
      factor = -factor;
#pragma unroll
      for (int e = 0; e < 4; ++e) magnitudes[e] *= 0x1p64F;
    }
    std::uint32_t integers[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) integers[e] = rounded(magnitudes[e], factor);
    gather(integers);
#pragma unroll
    for (int s = 0; s < Segments; ++s)  // a byte is at most 127, so that no carry leaves it
      words[s] = (((words[s] ^ signs) & 0x7f7f7f7fU) + (signs & 0x01010101U)) ^ (signs & 0x80808080U);
  }

 private:
  // Integer that tile_integer() gives, rounded once to nearest, ties to even. Bits from 24 on are arbitrary
  // if there are fewer than four segments: up to 21 bits are rounded by the addition of 2^23.
  __device__ __forceinline__ static std::uint32_t rounded(float magnitude, float factor) {
    if constexpr (Segments < 4) {
      return __float_as_uint(__fmaf_rn(magnitude, factor, 0x1p23F));
    } else {
      return __float2uint_rn(magnitude * factor);
    }
  }

  // Gathers the bytes of each segment. Segments are shifted to the borders of bytes two elements at a time,
  // in the halves of a word. Bit 7 of a byte is arbitrary.
  __device__ __forceinline__ void gather(const std::uint32_t (&integers)[4]) {
    const auto halves = [&](int e, unsigned bytes) {
      return __byte_perm(integers[e], integers[e + 1], bytes);
    };
    const std::uint32_t low[2]{halves(0, 0x5410), halves(2, 0x5410)};  // bits 0 ... 15
    words[Segments - 1] = __byte_perm(low[0], low[1], 0x6420);
    words[Segments - 2] = __byte_perm(low[0] << 1, low[1] << 1, 0x7531);
    if constexpr (Segments > 2) {
      const std::uint32_t middle[2]{halves(0, 0x6521), halves(2, 0x6521)};  // bits 8 ... 23
      words[Segments - 3] = __byte_perm(middle[0] >> 6, middle[1] >> 6, 0x6420);
    }
    if constexpr (Segments > 3) {
      const std::uint32_t high[2]{halves(0, 0x7632), halves(2, 0x7632)};  // bits 16 ... 31
      words[0] = __byte_perm(high[0] >> 5, high[1] >> 5, 0x6420);
    }
  }
};

constexpr int warps = pack_threads / 32;
constexpr int warp_length = 32;  // inner indices of a warp: as many as the shallowest tile has
static_assert(warps * warp_length == pack_length);
constexpr int max_panels = pack_vectors / 8;  // a panel has at least 8 vectors

// Eight lanes share a vector's 32 inner indices, four each, so that a warp has four vectors at once.
constexpr int vectors_at_once = 4;
constexpr int indices_of_lane = 4;
constexpr int steps = pack_vectors / vectors_at_once;

// A lane's elements: those of vector 4 step + lane / 8 at the inner indices 4 (lane % 8) + e of its warp.
// After find_magnitudes() they are magnitudes, and zeros in place of NaN and infinities.
struct LaneElements {
  float of_step[steps][indices_of_lane];
  std::uint32_t signs[steps];  // a byte for each element: 0xff if it is negative, else 0
};

struct PackStorage {
  // A vector has four elements of padding, so that accesses of 16 bytes along vectors and across them have no
  // bank conflicts.
  alignas(16) float element[warps][pack_vectors][warp_length + 4];
  VectorMagnitudes vector[warps][pack_vectors];  // of each warp's inner indices
  std::uint32_t special[warps][pack_vectors];    // flags of VectorRange: NaN and infinities
  // Largest exponent and depth sum (DepthSum) for each warp's inner indices and each panel.
  std::int32_t largest[warps][max_panels];
  std::uint32_t depth[warps][max_panels];
  float factor[warps][max_panels];  // segment_factor() of the tile of the warp's inner indices
  std::int32_t panel_exponent[max_panels];
  std::int32_t failing[max_panels];
  bool is_last;  // all other thread blocks of these vectors have ended
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

  // True if all vectors and inner indices of the warp are inside the operand.
  __device__ bool is_whole() const { return vectors == pack_vectors && indices == warp_length; }
  // True if each lane can read its four elements at once.
  __device__ bool has_aligned_fours() const {
    return index_stride == 1 && vector_stride % indices_of_lane == 0 && is_whole() &&
           reinterpret_cast<std::uintptr_t>(first) % sizeof(float4) == 0;
  }

 private:
  __device__ static int clamp(std::int64_t left, int all) {
    return static_cast<int>(max(std::int64_t{0}, min(left, std::int64_t{all})));
  }
};

__device__ __forceinline__ void store_four(const float4& four, float (&elements)[indices_of_lane]) {
  elements[0] = four.x;
  elements[1] = four.y;
  elements[2] = four.z;
  elements[3] = four.w;
}

__device__ __forceinline__ void load_fours(const WarpElements& source, LaneElements& elements) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float* first = source.first + lane / 8 * source.vector_stride + lane % 8 * indices_of_lane;
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    store_four(__ldg(reinterpret_cast<const float4*>(first)), elements.of_step[step]);
    first += vectors_at_once * source.vector_stride;
  }
}

// Loads elements in the order of memory and passes them through shared memory; those beyond the operand are
// zero. Neighboring lanes read along the smaller stride. IsWhole: all elements are inside the operand.
template <bool IsWhole>
__device__ void load_by_lanes(const WarpElements& source, float (&shared)[pack_vectors][warp_length + 4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool along_k = abs(source.index_stride) <= abs(source.vector_stride);
  if (along_k) {
    const float* element = source.first + lane * source.index_stride;
#pragma unroll 16
    for (int v = 0; v < pack_vectors; ++v, element += source.vector_stride)
      shared[v][lane] = IsWhole || (v < source.vectors && lane < source.indices) ? __ldg(element) : 0.0F;
    return;
  }
  const float* element = source.first + lane * source.vector_stride;
#pragma unroll 4
  for (int p = 0; p < warp_length; p += indices_of_lane) {
    float four[indices_of_lane];
#pragma unroll
    for (int e = 0; e < indices_of_lane; ++e, element += source.index_stride)
      four[e] = IsWhole || (lane < source.vectors && p + e < source.indices) ? __ldg(element) : 0.0F;
    *reinterpret_cast<float4*>(&shared[lane][p]) = {four[0], four[1], four[2], four[3]};
  }
}

// Loads the warp's elements; those beyond the operand become zero.
__device__ __forceinline__ void load_elements(const PackTask& task, const PackPart& part,
                                              PackStorage& storage, LaneElements& elements) {
  const WarpElements source(task, part);
  if (source.has_aligned_fours()) {
    load_fours(source, elements);
  } else {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    auto& shared = storage.element[threadIdx.x / 32];
    if (source.is_whole()) {
      load_by_lanes<true>(source, shared);
    } else {
      load_by_lanes<false>(source, shared);
    }
    __syncwarp();
#pragma unroll
    for (int step = 0; step < steps; ++step)
      store_four(*reinterpret_cast<const float4*>(
                     &shared[step * vectors_at_once + lane / 8][lane % 8 * indices_of_lane]),
                 elements.of_step[step]);
  }
}

// Panel of a step's vectors. Tiles have 8 vectors or 16.
__device__ int panel_of(int step, int tile_vectors) {
  return tile_vectors == 8 ? step * vectors_at_once / 8 : step * vectors_at_once / 16;
}

// Finds the magnitudes and signs of a lane's four elements, and adds them to the depth sum of their panel.
// NaN and infinities become zero and set the vector's flags.
__device__ __forceinline__ VectorMagnitudes find_magnitudes(float (&elements)[indices_of_lane],
                                                            std::uint32_t& signs, const ExponentRule& rule,
                                                            DepthSum& depth, std::uint32_t& special) {
  signs = sign_bytes(elements);
#pragma unroll
  for (int e = 0; e < indices_of_lane; ++e) elements[e] = fabsf(elements[e]);
  VectorMagnitudes all = magnitudes_of(elements);
  if (all.largest >= infinity_bits) {
    std::uint32_t flags = 0;
#pragma unroll
    for (int e = 0; e < indices_of_lane; ++e) {
      const std::uint32_t bits = __float_as_uint(elements[e]);
      const std::uint32_t infinity =
          (signs >> (8 * e) & 1U) != 0 ? VectorRange::has_minus_infinity : VectorRange::has_plus_infinity;
      flags |= bits > infinity_bits ? VectorRange::has_nan : bits == infinity_bits ? infinity : 0U;
      elements[e] = bits >= infinity_bits ? 0.0F : elements[e];
    }
    atomicOr(&special, flags);
    all = magnitudes_of(elements);
  }
  if (all.smallest >= smallest_normal_bits) {
    depth.add_normal(elements, rule);
  } else {
    depth.add_any(elements, rule);
    all.smallest = smallest_nonzero(elements);
  }
  return all;
}

// Finds the magnitudes of the warp's vectors, and each panel's exponent and depth sum.
__device__ __forceinline__ void find_magnitudes(const PackTask& task, LaneElements& elements,
                                                PackStorage& storage) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const ExponentRule rule(task.segments);
  DepthSum depth;
  VectorMagnitudes of_halves[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    VectorMagnitudes of_step[steps / 2];
#pragma unroll
    for (int i = 0; i < steps / 2; ++i) {
      const int step = half * (steps / 2) + i;
      of_step[i] = find_magnitudes(elements.of_step[step], elements.signs[step], rule, depth,
                                   storage.special[warp][step * vectors_at_once + lane / 8]);
      if (((step + 1) * vectors_at_once & (task.tile_vectors - 1)) != 0) continue;
      const std::uint32_t sum = __reduce_add_sync(~0U, depth.packed);
      if (lane == 0) storage.depth[warp][panel_of(step, task.tile_vectors)] = sum;
      depth = {};
    }
    of_halves[half] = reduce_steps(of_step);
  }
  const VectorMagnitudes mine = select((lane & 1) != 0, of_halves[1], of_halves[0]);
  const int step = step_of_lane(lane);
  storage.vector[warp][step * vectors_at_once + lane / 8] = mine;
  const std::uint32_t largest = largest_of_panel(mine.largest, task.tile_vectors);
  if ((lane & panel_lane_bits(task.tile_vectors)) == 0)
    storage.largest[warp][panel_of(step, task.tile_vectors)] =
        largest == 0 ? TileExponent::none : rule.exponent(__uint_as_float(largest));
}

// Finds the exponent of one tile and tests Eq. 9. One thread calls it. tile_index and panel are counted from
// the part's first tile and panel.
__device__ void finish_tile(const PackTask& task, const PackPart& part, PackStorage& storage, int tile_index,
                            int panel) {
  const int tile_warps = task.tile_depth / warp_length;
  TileExponentSum depth;
  for (int w = tile_index * tile_warps; w < (tile_index + 1) * tile_warps; ++w) {
    depth.largest = max(depth.largest, storage.largest[w][panel]);
    DepthSum{storage.depth[w][panel]}.add_to(depth);
  }
  const bool fails = depth.elements > 0 && depth.exceeds(task.mean_depth_limit);
  const bool is_zero = depth.elements == 0 || fails;
  for (int w = tile_index * tile_warps; w < (tile_index + 1) * tile_warps; ++w)
    storage.factor[w][panel] = is_zero ? 0.0F : segment_factor(depth.largest, task.segments);
  const std::int64_t tile = part.begin / task.tile_depth + tile_index;
  if (tile >= task.tiles) return;
  const std::int64_t panel_index = part.first_vector / task.tile_vectors + panel;
  weight_of(task, tile, panel_index) = fails ? failing_tile : is_zero ? 0 : stored_exponent(depth.largest);
}

// Adds the thread block's magnitudes to the ranges of its vectors. A warp calls it, with a lane for each
// vector.
__device__ void add_to_ranges(const PackTask& task, const PackPart& part, const PackStorage& storage) {
  const auto v = static_cast<int>(threadIdx.x) % 32;
  if (part.first_vector + v >= task.vectors) return;
  VectorMagnitudes all;
  std::uint32_t special = 0;
#pragma unroll
  for (int w = 0; w < warps; ++w) {
    all.add(storage.vector[w][v]);
    special |= storage.special[w][v];
  }
  add_to_range(range_of(task, part.first_vector + v), all, special);
}

// Counts the thread block as one that has stored exponents and ranges of these vectors. One thread calls it,
// after a barrier.
__device__ bool is_last_of_vectors(const PackTask& task, const PackPart& part) {
  __threadfence();
  std::int32_t* counter = &failures_of(task, part.first_vector / task.tile_vectors);
  const bool is_last = atomicAdd(counter, 1) + 1 == task.parts;
  __threadfence();
  return is_last;
}

// Replaces the stored exponents of all tiles of the vectors by weights, and counts the tiles that fail. All
// threads of the last thread block call it.
__device__ void finish_vectors(const PackTask& task, const PackPart& part, PackStorage& storage) {
  const auto thread = static_cast<int>(threadIdx.x);
  const int panels = pack_vectors / task.tile_vectors;
  if (thread < 32) finish_ranges(task, part, storage.panel_exponent);
  if (thread < max_panels) storage.failing[thread] = 0;
  __syncthreads();
  constexpr int tiles_at_once = 4;
  const int panel = thread % panels;
  const std::int64_t panel_index = part.first_vector / task.tile_vectors + panel;
  const int tile_step = pack_threads / panels;
  int failing = 0;
  for (std::int64_t first = thread / panels; first < task.tiles; first += tiles_at_once * tile_step) {
    std::int32_t stored[tiles_at_once];
#pragma unroll
    for (int i = 0; i < tiles_at_once; ++i) {
      const std::int64_t tile = first + i * tile_step;
      stored[i] = tile < task.tiles ? __ldcg(&weight_of(task, tile, panel_index)) : 0;
    }
#pragma unroll
    for (int i = 0; i < tiles_at_once; ++i) {
      if (stored[i] == failing_tile) ++failing;
      if (stored[i] <= 0) continue;
      const float weight = tile_weight(exponent_of_stored(stored[i]) - storage.panel_exponent[panel]);
      weight_of(task, first + i * tile_step, panel_index) = __float_as_int(weight);
    }
  }
  if (failing != 0) atomicAdd(&storage.failing[panel], failing);
  __syncthreads();
  if (thread < panels) failures_of(task, panel_index) = storage.failing[panel];
}

// Writes the segments of all vectors of the part, for the warp's inner indices.
template <int Segments>
__device__ __forceinline__ void write_segments(const PackTask& task, const PackPart& part,
                                               LaneElements& elements, const PackStorage& storage) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int p = warp * warp_length + lane % 8 * indices_of_lane;
  if (part.begin + p >= task.vector_stride) return;
  std::int8_t* target = task.slices + item_of_block() * task.item_bytes +
                        (part.first_vector + lane / 8) * task.vector_stride + part.begin + p;
#pragma unroll
  for (int step = 0; step < steps; ++step, target += vectors_at_once * task.vector_stride) {
    const float factor = storage.factor[warp][panel_of(step, task.tile_vectors)];
    const SegmentWords<Segments> segments(elements.of_step[step], elements.signs[step], factor);
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

extern "C" __global__ void __launch_bounds__(pack_threads, 3)
    pack_tiles(const __grid_constant__ PackTask task) {
  begin_dependent_kernel();
  if (is_unneeded(task)) return;
  __shared__ PackStorage storage;
  const auto thread = static_cast<int>(threadIdx.x);
  const PackPart part(task);
  LaneElements elements;
  storage.special[thread / 32][thread % 32] = 0;
  load_elements(task, part, storage, elements);
  __syncwarp();
  find_magnitudes(task, elements, storage);
  __syncthreads();
  const int panels = pack_vectors / task.tile_vectors;
  if (thread < panels * (pack_length / task.tile_depth))
    finish_tile(task, part, storage, thread / panels, thread % panels);
  if (!task.ranges_known && thread / 32 == 1) add_to_ranges(task, part, storage);
  __syncthreads();
  if (thread == 0) storage.is_last = is_last_of_vectors(task, part);
  if (task.segments == 2) write_segments<2>(task, part, elements, storage);
  if (task.segments == 3) write_segments<3>(task, part, elements, storage);
  if (task.segments == 4) write_segments<4>(task, part, elements, storage);
  __syncthreads();
  if (storage.is_last) finish_vectors(task, part, storage);
}

extern "C" __global__ void __launch_bounds__(count_threads)
    count_tiles(const __grid_constant__ CountTask task) {
  begin_dependent_kernel();
  if (!holds(task.condition, item_of_block())) return;
  add_panels(task.a, task.report->tiles_a);
  add_panels(task.b, task.report->tiles_b);
}

}  // namespace kintsugi::core::cuda
