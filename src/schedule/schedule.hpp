// Schedules. A schedule says which slices are multiplied, in which order, which terms share an accumulator,
// and after how many inner indices partial sums are added outside the engine.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/view.hpp"

namespace kintsugi::core {

// One product of slices. If `rescales` is true, the accumulator of the term's group is multiplied by
// 2^rescale_exponent (Schedule::rescale_exponent) before the term's products are added.
struct Term {
  std::int16_t a = 0;
  std::int16_t b = 0;
  std::int16_t group = 0;
  bool rescales = false;

  friend constexpr bool operator==(const Term&, const Term&) = default;
};

// The structure of a schedule. A structure is a template argument of kernels. Schedule has the same members
// at run time.
//
// k_block: inner indices of a block; 0: all of k is one block. At the beginning of a block, each group's
// accumulator is zero. Then the terms are added in their order, each over the whole block. If k_step is not
// 0, the terms alternate after every k_step indices instead. At the end of the block, each accumulator is
// added to its group's sum outside the engine, in fp32 to nearest. There are two exceptions: with
// Accumulator::fp32 the sum is in fp64 and is rounded to fp32 after the last block, and sums of integers are
// exact, in 64 bits. With k_block = 0 the accumulator is the sum.
//
// If k_segment is not 0, k is cut into segments of at most about this length (Schedule::segment_length).
// Every segment has a sum of its own outside the engine, and the segments' sums are added in the order of k.
// One chain of fp32 additions over all blocks would lose about sqrt(blocks) units in the last place if all
// elements have one sign.
//
// most_halvings: largest number of times that blocks are halved for a product with few elements or a short k
// on a matrix unit that truncates. Segments are then shortened, too (Schedule::shortened).
//
// If `is_direct` is true, products split their operands themselves, and arith/direct_arithmetic.hpp defines
// how sums are added outside the engine.
//
// If `joint` is true, all groups are added to one sum, one after the other, each multiplied by its
// 2^group_exponents[g]. Terms are then added element by element instead of matrix by matrix.
template <int TermCount>
struct Structure {
  std::array<Term, TermCount> terms;
  int slices_a;
  int slices_b;
  int groups;
  std::int32_t k_block;
  std::int32_t k_step;
  bool joint = false;
  std::int32_t k_segment = 0;
  int most_halvings = 0;
  bool is_direct = false;

  friend constexpr bool operator==(const Structure&, const Structure&) = default;
};

inline constexpr int max_groups = 256;

// Sums of slices whose tiles have an exponent each (SplitKind::tiles). Group g has the weight 2^(-7 g) within
// a tile. The four groups' sums over a tile's inner indices give one fp32 number (tile_value() of
// arith/tile_arithmetic.hpp). This number is multiplied by the weights of both tiles and added to sum 0,
// outside the engine. Sum 1 is the sum of the tiles that failed Eq. 9. The execution computes sum 1, not the
// engine.
struct TileSums {
  std::int32_t depth = 0;      // inner indices of a tile, equal to k_block; 0: no exponents per tile
  bool pair_exponent = false;  // both tiles of a product use the larger of their exponents
};

// Structure and weights at run time. The result is the sum over groups of 2^group_exponents[g] * sum_g.
struct Schedule {
  std::span<const Term> terms;
  int slices_a = 0;
  int slices_b = 0;
  int groups = 0;
  std::int64_t k_block = 0;
  std::int64_t k_step = 0;
  bool joint = false;
  std::int64_t k_segment = 0;
  int most_halvings = 0;
  bool is_direct = false;
  // True: the elements of the floating-point slices are integers whose sums within a block are exact. These
  // sums are added outside the engine as 64-bit integers.
  bool integer_sums = false;
  int rescale_exponent = 0;
  std::array<int, max_groups> group_exponents{};
  // Residues: the modulus of each group's sums.
  std::array<std::int16_t, max_groups> group_moduli{};
  TileSums tiles{};

  // sums() returns the number of sums outside the engine. sum_exponent() returns the exponent of the weight
  // by which the recombination multiplies a sum. A joint sum contains its weights already.
  int sums() const { return tiles.depth > 0 ? 2 : joint ? 1 : groups; }
  int sum_exponent(int sum) const { return joint ? 0 : group_exponents[static_cast<std::size_t>(sum)]; }

  // Returns the schedule for a C of `elements` elements, each a sum of k products, on a matrix unit that
  // truncates. A block's sum loses in proportion to the block's length, and a segment's sum in proportion to
  // the root of its number of blocks. With few elements or a short k the schedule has to lose less than for
  // other products, because the vendor's kernels lose less: for a C of few elements they divide k among the
  // SMs. The limits below are the sizes up to which cuBLAS 13.0 divided k
  // (docs/schemes/fp16x3.md).
  Schedule shortened(double elements, std::int64_t k) const {
    constexpr double few = 0x1p20;
    constexpr double many = 0x1p22;
    constexpr std::int64_t short_k = 128;
    const int wanted = elements < few ? 2 : elements < many || k <= short_k ? 1 : 0;
    const int halvings = std::min(wanted, most_halvings);
    Schedule schedule = *this;
    schedule.most_halvings = 0;
    schedule.k_block >>= halvings;
    if (halvings > 0) {
      const int segment_halvings = halvings == 1 ? 2 : 5;
      const std::int64_t least = round_up(divide_up(k, 16), 64);  // at most 16 segments of multiples of 64
      schedule.k_segment = std::max(k_segment >> segment_halvings, least);
    }
    return schedule;
  }

  std::int64_t block_length(std::int64_t k) const { return k_block == 0 || k_block > k ? k : k_block; }

  // Returns the length of every segment but the last. Segments are nearly equal multiples of whole blocks.
  // The unit of 64 makes the length the same for k and for k padded to a multiple of 64.
  std::int64_t segment_length(std::int64_t k) const {
    if (k_segment == 0 || k <= k_segment) return k;
    const std::int64_t unit = std::max<std::int64_t>(64, k_block);
    return round_up(divide_up(k, divide_up(k, k_segment)), unit);
  }
};

template <int TermCount>
constexpr Schedule make_schedule(const Structure<TermCount>& structure, int rescale_exponent = 0,
                                 std::array<int, max_groups> group_exponents = {}) {
  return {.terms = structure.terms,
          .slices_a = structure.slices_a,
          .slices_b = structure.slices_b,
          .groups = structure.groups,
          .k_block = structure.k_block,
          .k_step = structure.k_step,
          .joint = structure.joint,
          .k_segment = structure.k_segment,
          .most_halvings = structure.most_halvings,
          .is_direct = structure.is_direct,
          .rescale_exponent = rescale_exponent,
          .group_exponents = group_exponents};
}

// The single product of slice 0 of A and slice 0 of B, for baselines and the native product.
inline constexpr Structure<1> single_product{
    .terms = {Term{}}, .slices_a = 1, .slices_b = 1, .groups = 1, .k_block = 0, .k_step = 0};

}  // namespace kintsugi::core
