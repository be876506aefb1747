// Ranges of vectors and weights of tiles, as the thread blocks of pack_tiles() gather them.
#pragma once

#include "arith/tile_arithmetic.hpp"
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/split/pack_tiles.hpp"

namespace kintsugi::core::cuda {

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

}  // namespace kintsugi::core::cuda
