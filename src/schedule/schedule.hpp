// Schedules: which slices are multiplied, in which order, which terms share an accumulator, and after how
// many k partial sums are added outside the engine.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/view.hpp"

namespace kintsugi::core {

// One product of slices. Where `rescales` is set, the accumulator of its group is multiplied by
// 2^rescale_exponent (a weight of the schedule) before the term's products are added to it.
struct Term {
  std::int16_t a = 0;
  std::int16_t b = 0;
  std::int16_t group = 0;
  bool rescales = false;

  friend constexpr bool operator==(const Term&, const Term&) = default;
};

// The structure of a schedule: constexpr, usable as a template argument (kernels are instantiated on it) and,
// through Schedule, as a run-time list.
//
// For every block of k_block inner indices (0: one block, all of k) each group's accumulator starts at zero;
// the terms are added in order, each over the whole block, or, if k_step is not 0, alternating after every
// k_step indices. At the end of the block each accumulator is added to its group's sum outside the engine, in
// fp32 to nearest (Accumulator::fp32: in fp64, rounded to fp32 after the last block; integers: exactly, in 64
// bits). With k_block = 0 the accumulator is the sum.
//
// If k_segment is not 0, k is cut into segments of at most about that length (Schedule::segment_length):
// every segment has a sum of its own outside the engine, and the segments' sums are added in the order of k.
// One chain of fp32 additions over all blocks would lose about sqrt(blocks) units in the last place if all
// elements have one sign.
//
// most_halvings: how often, at most, blocks are halved for a product with few elements or a short k on a
// matrix unit that truncates; segments are shortened, too (Schedule::shortened).
//
// If `joint` is set, all groups are added to one sum, one after the other, each multiplied by its
// 2^group_exponents[g]: terms are then added element by element instead of matrix by matrix.
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

  friend constexpr bool operator==(const Structure&, const Structure&) = default;
};

inline constexpr int max_groups = 256;

// Sums of slices whose tiles have an exponent each (split/tiles.hpp). Group g has the weight 2^(-7 g) within
// a tile. The four groups' sums over a tile's inner indices give one fp32 number (tile_value() of
// arith/tile_arithmetic.hpp), which is multiplied by the weights of both tiles and added to sum 0, outside
// the engine. Sum 1 is that of the tiles that failed Eq. 9; the execution computes it, not the engine.
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
  // The slices are floating-point, but their elements are integers whose sums within a block are exact: these
  // sums are added outside as 64-bit integers.
  bool integer_sums = false;
  int rescale_exponent = 0;
  std::array<int, max_groups> group_exponents{};
  // Residues: the modulus of each group's sums.
  std::array<std::int16_t, max_groups> group_moduli{};
  TileSums tiles{};

  // Number of sums outside the engine, and the exponent of the weight by which the recombination multiplies
  // each. A joint sum has its weights already.
  int sums() const { return tiles.depth > 0 ? 2 : joint ? 1 : groups; }
  int sum_exponent(int sum) const { return joint ? 0 : group_exponents[static_cast<std::size_t>(sum)]; }

  // Returns the schedule for a C of `elements` elements, each a sum of k products, on a matrix unit that
  // truncates. A block's sum loses in proportion to the block's length, and a segment's sum in proportion to
  // the root of its number of blocks. With few elements or a short k the schedule has to lose less than for
  // other products, because the vendor's kernels do: for a C of few elements they divide k among the SMs. The
  // limits are sizes up to which cuBLAS 13.0 did so on an H100 (docs/schemes/fp16x3.md).
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

  // Length of every segment but the last: segments are nearly equal multiples of whole blocks. The unit of 64
  // makes the length the same for k and for k padded to a multiple of 64.
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
          .rescale_exponent = rescale_exponent,
          .group_exponents = group_exponents};
}

// The single product of slice 0 of A and slice 0 of B, for baselines and the native product.
inline constexpr Structure<1> single_product{
    .terms = {Term{}}, .slices_a = 1, .slices_b = 1, .groups = 1, .k_block = 0, .k_step = 0};

}  // namespace kintsugi::core
