// int52: N words of 52 bits for each row and column, on one grid; all N^2 products, exact sums, one rounding.
//
//   a' = 2^s_i a  with max_p |a'_ip| < 2^51 - 2^44          likewise the columns of B
//   RN(2^(52 (N - 1)) a') = sum over s of 2^(52 (N - 1 - s)) a_s      -2^51 <= a_s < 2^51
//   S_g = sum over s + t = g of a_s b_t                      in 128 bits
//   C   = RN(alpha 2^-(s_i + t_j) sum over g of 2^(-52 g) S_g + beta C)      exact but for this rounding
//
// One word is a grid of 51 bits below the largest magnitude of a row or column. If the last bits of all
// elements are on the grid, C is correctly rounded. The engine cpu skips words that are zero in a whole tile,
// so a row costs only the words that its dynamic range needs.
#pragma once

#include <array>
#include <string_view>

#include "formats/formats.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

template <int Words>
inline constexpr auto int52_structure = [] {
  Structure<Words * Words> structure{
      .terms = {}, .slices_a = Words, .slices_b = Words, .groups = 2 * Words - 1, .k_block = 0, .k_step = 0};
  for (int s = 0; s < Words; ++s) {
    for (int t = 0; t < Words; ++t) {
      structure.terms[s * Words + t] = {.a = static_cast<std::int16_t>(s),
                                        .b = static_cast<std::int16_t>(t),
                                        .group = static_cast<std::int16_t>(s + t)};
    }
  }
  return structure;
}();

template <int Words>
constexpr Program int52_program() {
  const SplitRule split = grid_split(core::int52, Words);
  std::array<int, max_groups> exponents{};
  for (int g = 0; g < 2 * Words - 1; ++g) exponents[g] = -g * split.residual_exponent;
  return {split, split, make_schedule(int52_structure<Words>, 0, exponents)};
}

// Sets the parameters. Returns the first one that the scheme refuses; nullptr if there is none.
inline const Parameter* configure_int52(Program& program, std::span<const Parameter> parameters) {
  for (const Parameter& parameter : parameters) {
    const auto words = parse_parameter(parameter.value, 1, 4);
    if (parameter.key != "words" || !words) return &parameter;
    program = *words == 1   ? int52_program<1>()
              : *words == 2 ? int52_program<2>()
              : *words == 3 ? int52_program<3>()
                            : int52_program<4>();
  }
  return nullptr;
}

inline constexpr Scheme int52{
    .name = "int52",
    .summary = "N words of 52 bits on a grid a row and column, N^2 products, exact sums, one rounding",
    .operands = {OperandType::f32, OperandType::f64},
    .program = int52_program<1>(),
    .bound =
        "2^(51 - 52 N) (u_i ||b_j||_1 + v_j ||a_i||_1) + 2^(102 - 104 N) k u_i v_j, 2^50 (1 - 2^-7) u_i "
        "<= max |a_ip| < 2^51 (1 - 2^-7) u_i, v_j likewise; 0 where no element is rounded",
    .window = "correctly rounded where rows and columns span at most 52 N - 55 binades (FP32: 52 N - 26)",
    .source = "ours: Ozaki's error-free grid on the integer multiply-add of AVX-512 IFMA",
    .parameters = "words=1...4",
    .configure = configure_int52,
};

}  // namespace kintsugi::core::schemes
