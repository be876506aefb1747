// mixpert-1 ... mixpert-4 and mixpert-full: int8 segments with one exponent per tile (Lin, Sun, Zhang and Lu,
// MixPert, LCTES 2024). docs/schemes/mixpert.md defines every step.
//
//   tiles of 16 rows x 32 of A, 32 x 8 columns of B, with p the largest exponent after rounding
//   RN(2^(7 n - 1 - p) |x|) = 2^(7 (n - 1)) x0 + ... + x_(n - 1)     0 <= x_s <= 127, with x's sign
//   S_w = sum of x_i y_j with i + j = w over a tile's inner indices, w < 4     int32
//   v   = RN(2^7 S0 + S1) + 2^-14 RN(2^7 S2 + S3)                              one fma
//   sum = sum + 2^(p_A + p_B) v                                                one fma a tile
//
// Levels I-IV split A and B into (2, 2), (2, 3), (3, 2) and (3, 3) segments. Level IV leaves out x2 y2.
// mixpert-full splits both operands into four segments, and computes the ten products with i + j <= 3. The
// six other products begin beyond the 28th bit.
#pragma once

#include <array>
#include <bit>

#include "arith/tile_arithmetic.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

inline constexpr int mixpert_rows = 16;    // rows of a tile of A
inline constexpr int mixpert_columns = 8;  // columns of a tile of B
inline constexpr int mixpert_depth =
    32;  // inner indices of a tile unless the parameter `tile` says otherwise

constexpr SplitRule mixpert_split(int segments, int vectors) {
  SplitRule rule = nearest_split(core::int8, segments, segment_bits);
  rule.scale_vectors = true;
  rule.top_exponent = 0;
  rule.kind = SplitKind::tiles;
  rule.tile_vectors = vectors;
  rule.tile_depth = mixpert_depth;
  return rule;
}

// Returns the structure of the products x_i y_j with i + j < 4. TermCount: their number.
template <int TermCount>
constexpr Structure<TermCount> mixpert_structure(int segments_a, int segments_b) {
  Structure<TermCount> structure{.terms = {},
                                 .slices_a = segments_a,
                                 .slices_b = segments_b,
                                 .groups = 4,
                                 .k_block = mixpert_depth,
                                 .k_step = 0};
  std::size_t next = 0;
  for (std::int16_t weight = 0; weight < 4; ++weight) {
    for (std::int16_t i = 0; i <= weight; ++i) {
      const auto j = static_cast<std::int16_t>(weight - i);
      if (i < segments_a && j < segments_b) structure.terms[next++] = Term{.a = i, .b = j, .group = weight};
    }
  }
  return structure;
}

inline constexpr auto mixpert_structure_1 = mixpert_structure<4>(2, 2);
inline constexpr auto mixpert_structure_2 = mixpert_structure<6>(2, 3);
inline constexpr auto mixpert_structure_3 = mixpert_structure<6>(3, 2);
inline constexpr auto mixpert_structure_4 = mixpert_structure<8>(3, 3);
inline constexpr auto mixpert_structure_full = mixpert_structure<10>(4, 4);

template <int TermCount>
constexpr Program mixpert_program(const Structure<TermCount>& structure) {
  // The exponents -19 and -14 of the two sums are the units of tile_value() and half_value()
  // (arith/tile_arithmetic.hpp).
  Program program{mixpert_split(structure.slices_a, mixpert_rows),
                  mixpert_split(structure.slices_b, mixpert_columns),
                  make_schedule(structure, 0, {-19, -14})};
  program.schedule.tiles.depth = mixpert_depth;
  return program;
}

// Sets the number of inner indices that share an exponent: 32, 64, 128 or 256.
inline void set_tile_depth(Program& program, int depth) {
  program.split_a.tile_depth = program.split_b.tile_depth = depth;
  program.schedule.k_block = program.schedule.tiles.depth = depth;
}

// Sets the parameters. Returns the first one that the scheme refuses; nullptr if there is none.
inline const Parameter* configure_mixpert(Program& program, std::span<const Parameter> parameters) {
  for (const Parameter& parameter : parameters) {
    if (parameter.key == "tile") {
      const auto depth = parse_parameter(parameter.value, mixpert_depth, deepest_tile);
      if (!depth || !std::has_single_bit(static_cast<unsigned>(*depth))) return &parameter;
      set_tile_depth(program, *depth);
    } else if (parameter.key == "exponent" && (parameter.value == "pair" || parameter.value == "operand")) {
      program.schedule.tiles.pair_exponent = parameter.value == "pair";
    } else {
      return &parameter;
    }
  }
  return nullptr;
}

// Sets Eq. 9's delta to log2 k, rounded down. It is the number of bits that a sum of k products loses in
// FP32.
inline void fit_mixpert(Program& program, OperandType, std::int64_t k) {
  program.split_a.mean_depth_limit = program.split_b.mean_depth_limit =
      static_cast<int>(std::bit_width(static_cast<std::uint64_t>(k))) - 1;
}

constexpr Scheme mixpert_scheme(std::string_view name, std::string_view summary, const Program& program,
                                std::string_view bound) {
  return {
      .name = name,
      .summary = summary,
      .operands = OperandType::f32,
      .program = program,
      .bound = bound,
      .window =
          "none: the error is relative to the largest magnitude of a tile; tiles that fail Eq. 9 are "
          "multiplied by a half-precision program",
      .source = "MixPert sections 3.2 and 3.3, Eqs. 2-4 and 7-9",
      .parameters =
          "tile=32, 64, 128 or 256 inner indices with one exponent, on GPUs not 256; exponent=operand, "
          "or pair for one exponent of both tiles of a product, which GPUs do not have",
      .configure = configure_mixpert,
      .fit = fit_mixpert,
  };
}

inline constexpr Scheme mixpert_1 = mixpert_scheme(
    "mixpert-1", "int8 segments with an exponent per tile, 2 and 2 segments, 4 products",
    mixpert_program(mixpert_structure_1),
    "2^-14 (u_i ||b_j||_1 + v_j ||a_i||_1) + 2^-28 k u_i v_j + (k/32 + 2) u |A||B|; u_i, v_j at most "
    "1.01 times the largest magnitude of the 16 rows and of the 8 columns that share tiles");
inline constexpr Scheme mixpert_2 =
    mixpert_scheme("mixpert-2", "int8 segments with an exponent per tile, 2 and 3 segments, 6 products",
                   mixpert_program(mixpert_structure_2),
                   "2^-14 u_i ||b_j||_1 + 2^-21 v_j ||a_i||_1 + 2^-35 k u_i v_j + (k/32 + 2) u |A||B|; "
                   "u_i, v_j as mixpert-1");
inline constexpr Scheme mixpert_3 =
    mixpert_scheme("mixpert-3", "int8 segments with an exponent per tile, 3 and 2 segments, 6 products",
                   mixpert_program(mixpert_structure_3),
                   "2^-21 u_i ||b_j||_1 + 2^-14 v_j ||a_i||_1 + 2^-35 k u_i v_j + (k/32 + 2) u |A||B|; "
                   "u_i, v_j as mixpert-1");
inline constexpr Scheme mixpert_4 = mixpert_scheme(
    "mixpert-4", "int8 segments with an exponent per tile, 3 and 3 segments, 8 products",
    mixpert_program(mixpert_structure_4),
    "2^-21 (u_i ||b_j||_1 + v_j ||a_i||_1) + 2^-26 k u_i v_j + (k/32 + 2) u |A||B|; u_i, v_j as mixpert-1");
inline constexpr Scheme mixpert_full = mixpert_scheme(
    "mixpert-full", "int8 segments with an exponent per tile, all mantissa bits, 10 products",
    mixpert_program(mixpert_structure_full),
    "2^-28 (u_i ||b_j||_1 + v_j ||a_i||_1) + 2^-24 k u_i v_j + (k/32 + 2) u |A||B|; u_i, v_j as mixpert-1");

}  // namespace kintsugi::core::schemes
