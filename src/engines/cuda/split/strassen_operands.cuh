// Residues of the seven operands of one step of Strassen's algorithm, from pairs of vectors.
//
// A warp takes 16 groups at once. Lane 4 g + e holds element e of the quads of groups 2 g and 2 g + 1, as
// eight digits. That is how mma.sync expects the first factor: a row is a quad, its 32 inner indices are
// the digits of four elements. The second factor are the weights of strassen_weights.hpp. So one instruction
// adds up the products of digits and combines the elements to an operand, for 16 quads and eight moduli.
#pragma once

#include <cstdint>

#include "arith/residue/strassen.hpp"
#include "engines/cuda/ptx/mma.cuh"
#include "engines/cuda/split/byte_elements.cuh"
#include "engines/cuda/split/split_task.hpp"
#include "engines/cuda/split/strassen_weights.hpp"
#include "engines/cuda/split/strips.cuh"

namespace kintsugi::core::cuda::strassen {

// Quads of one step of Strassen's algorithm (arith/residue/strassen.hpp). A pair of vectors are vectors v and
// v + 4 of an operand, of which the first is in the first half of the vectors. A group are eight inner
// indices of a pair, of which the first four are in the first half of k. A pair has four quads in a group:
// elements of the four quadrants at the same indices.

inline constexpr int quads_of_group = strassen_group;
inline constexpr int group_length = 2 * strassen_group;

// Index in each slice of the first byte of a group. `pair` is the index in the first half of the pair's first
// vector.
__device__ inline std::int64_t offset_of_group(const SplitTask& task, int pair, int group) {
  return std::int64_t{pair} * (task.vector_stride / 2) + group * quads_of_group;
}

inline constexpr int groups_of_lane = 2;
inline constexpr int groups_of_warp = 8 * groups_of_lane;

static __device__ constexpr OperandWeights operand_weights = make_operand_weights();
static __device__ constexpr ModuliOfLanes moduli_of_lanes = make_moduli_of_lanes();

__device__ inline int lane_of_warp() { return static_cast<int>(threadIdx.x) % 32; }
// A lane's vector of a pair, and half of k.
__device__ inline int vector_of_lane() { return lane_of_warp() % 4 / 2; }
__device__ inline int half_of_lane() { return lane_of_warp() % 2; }
// First of a lane's groups among those of its warp.
__device__ inline int group_of_lane() { return lane_of_warp() / 4 * groups_of_lane; }

// A lane's elements of its groups.
using LaneElements = double[groups_of_lane][quads_of_group];

// Quads in the rows of first factors: rows 0 ... 7 of fragment [j][h] are quads 2 h of the lanes' groups j,
// rows 8 ... 15 are quads 2 h + 1.
using QuadFragments = std::uint32_t[groups_of_lane][2][4];

// Turns a lane's elements into digits. Elements that are not finite count as zero.
__device__ __forceinline__ void make_fragments(const Scaling& scaling, LaneElements& x,
                                               QuadFragments& fragments) {
#pragma unroll
  for (int j = 0; j < groups_of_lane; ++j) {
    if (!scaling.plain) {
#pragma unroll
      for (double& element : x[j]) element = element - element == 0 ? element : 0.0;
    }
    ByteDigits digits[quads_of_group];
    to_digits(scaling, x[j], digits);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      fragments[j][h][0] = digits[2 * h].low;
      fragments[j][h][1] = digits[2 * h + 1].low;
      fragments[j][h][2] = digits[2 * h].high;
      fragments[j][h][3] = digits[2 * h + 1].high;
    }
  }
}

// Sets words[c][j] to the residues of the lane's group j for the lane's modulus c.
__device__ __forceinline__ void multiply(const QuadFragments& fragments, const DigitWeights& weights,
                                         const LaneModuli& lane_moduli,
                                         std::uint32_t (&words)[2][groups_of_lane]) {
  const std::uint32_t b[2] = {weights.low, weights.high};
#pragma unroll
  for (int j = 0; j < groups_of_lane; ++j) {
    std::uint32_t residues[2][quads_of_group];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      std::int32_t sums[4];
      mma_signed_bytes(sums, fragments[j][h], b, lane_moduli.start);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int c = i % 2;
        const FloatModulus modulus{.modulus = lane_moduli.modulus[c],
                                   .inverse = lane_moduli.inverse[c],
                                   .rounding = lane_moduli.rounding[c]};
        residues[c][2 * h + i / 2] = residue_by_float(sums[i], modulus);
      }
    }
#pragma unroll
    for (int c = 0; c < 2; ++c) words[c][j] = low_bytes(residues[c]);
  }
}

// Stores eight bytes if the condition holds, without a branch, which would keep lanes apart.
__device__ __forceinline__ void store_if(bool condition, std::byte* target,
                                         const std::uint32_t (&words)[groups_of_lane]) {
  static_assert(groups_of_lane == 2);
  asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %0, 0;\n@p st.global.v2.b32 [%1], {%2, %3};\n}" ::"r"(
                   condition ? 1 : 0),
               "l"(target), "r"(words[0]), "r"(words[1])
               : "memory");
}

// Writes the slices of a warp's groups of a pair. `offset` is the index in each slice of the first byte of
// the lane's groups. All lanes must call this together; those whose groups do not exist have `writes`
// false.
__device__ __forceinline__ void write_groups(const SplitTask& task, const Scaling& scaling, LaneElements& x,
                                             std::int64_t offset, bool writes, const SideWeights& weights) {
  QuadFragments fragments;
  make_fragments(scaling, x, fragments);
  __syncwarp();  // some vectors of a warp may be plain, others not
  const int lane = lane_of_warp();
  const int count = task.rule.slices / strassen_products;
  const std::int64_t operand_stride = count * task.slice_stride;
#pragma unroll 1
  for (int set = 0; set * moduli_of_product < count; ++set) {
    const LaneModuli lane_moduli = moduli_of_lanes.moduli[set][lane % 4];
    const int t = set * moduli_of_product + lane % 4 * 2;
    std::byte* target = slices_of(task) + offset + t * task.slice_stride;
#pragma unroll
    for (int q = 0; q < strassen_products; ++q, target += operand_stride) {
      std::uint32_t words[2][groups_of_lane];
      multiply(fragments, weights[set][q][lane], lane_moduli, words);
      store_if(writes && t < count, target, words[0]);
      store_if(writes && t + 1 < count, target + task.slice_stride, words[1]);
    }
  }
}

// Copies the weights of the task's side to shared memory: L1 loses them to the operand. All threads of the
// thread block must call it.
__device__ inline void load_weights(const SplitTask& task, SideWeights& weights) {
  constexpr int count = sizeof(SideWeights) / sizeof(uint4);
  const auto* source = reinterpret_cast<const uint4*>(operand_weights.weights[task.matrix.right ? 1 : 0]);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    reinterpret_cast<uint4*>(weights)[i] = source[i];
  __syncthreads();
}

// Writes zeros to a warp's groups of a pair of padding.
__device__ inline void clear_groups(const SplitTask& task, std::int64_t offset, bool writes) {
  if (!writes) return;
  constexpr int lanes = 4;
  const std::uint32_t zeros[groups_of_lane] = {};
  for (int s = lane_of_warp() % lanes; s < task.rule.slices; s += lanes)
    store_words(slices_of(task) + offset + s * task.slice_stride, zeros);
}

// Scaling of a vector that does not exist and whose elements are zeros in shared memory.
__device__ inline Scaling scaling_of_padding() { return {.plain = true}; }

// Pairs of vectors in a strip (strips.cuh), for the kernels of Strassen's step.

// Writes the slices of a thread block's part of a strip, which has the part of four pairs.
__device__ inline void write_strip(const SplitTask& task, const StripPart& part, const double* shared,
                                   const Scaling* scalings, const SideWeights& weights) {
  using Shape = Strip<double>;
  static_assert(Shape::width == 2 * quads_of_group && strip_group == group_length);
  constexpr int pairs = Shape::width / 2;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int v = warp % pairs;
  const bool exists = part.first_vector + v < task.vectors;
  const int groups = part.length / group_length;
  const double* const vector =
      shared + v + vector_of_lane() * pairs + half_of_lane() * quads_of_group * Shape::width;
  for (int first = warp / pairs * groups_of_warp; first < groups;
       first += static_cast<int>(blockDim.x) / 32 / pairs * groups_of_warp) {
    const int group = first + group_of_lane();
    const bool writes = group < groups;  // their number is even
    const std::int64_t offset =
        offset_of_group(task, part.first_vector / 2 + v, part.first_element / group_length + group);
    if (!exists) {
      clear_groups(task, offset, writes);
      continue;
    }
    const double* const line = vector + (writes ? group : 0) * Shape::group_pitch;
    LaneElements x;
#pragma unroll
    for (int j = 0; j < groups_of_lane; ++j) {
#pragma unroll
      for (int i = 0; i < quads_of_group; ++i) x[j][i] = line[j * Shape::group_pitch + i * Shape::width];
    }
    write_groups(task, scalings[v + vector_of_lane() * pairs], x, offset, writes, weights);
  }
}

}  // namespace kintsugi::core::cuda::strassen
