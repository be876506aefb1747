// quantensor: quantize rows and columns to int8, then refine with the quantized residuals.
//
//   a' = 2^s_i a  with max_p |a'_ip| < 127                 likewise the columns of B
//   a0 = RN(a'), a1 = RN((a' - a0) 2^7), a2 = RN(residual 2^7)         |a1|, |a2| <= 64
//   slices=1: a0 b0;   slices=2 (default): a0 b0, a0 b1, a1 b0;   slices=3: all nine
//   C  = 2^-(s_i + t_j) sum of 2^-7(s + t) [a_s b_t]       every product in int32 accumulators of its own
//
// The paper's quantizer multiplies by 127 / max, a real number, once for the matrix or row and again for
// every residual: scale=max does so (split/maxima.hpp), without 2^7 and with a weight for each slice of a
// vector. The default, powers of two that follow from exponents, loses up to one bit per slice.
#pragma once

#include <array>

#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

// Inner indices that one int32 accumulator sums. Each term has an accumulator of its own, which holds 131,071
// products.
inline constexpr std::int32_t quantensor_block = 65536;

inline constexpr Structure<1> quantensor_structure_1{.terms = {Term{.a = 0, .b = 0}},
                                                     .slices_a = 1,
                                                     .slices_b = 1,
                                                     .groups = 1,
                                                     .k_block = quantensor_block,
                                                     .k_step = 0};

inline constexpr Structure<3> quantensor_structure_2{
    .terms = {Term{.a = 0, .b = 0}, Term{.a = 0, .b = 1, .group = 1}, Term{.a = 1, .b = 0, .group = 2}},
    .slices_a = 2,
    .slices_b = 2,
    .groups = 3,
    .k_block = quantensor_block,
    .k_step = 0};

inline constexpr Structure<9> quantensor_structure_3{
    .terms = {Term{.a = 0, .b = 0}, Term{.a = 0, .b = 1, .group = 1}, Term{.a = 1, .b = 0, .group = 2},
              Term{.a = 1, .b = 1, .group = 3}, Term{.a = 0, .b = 2, .group = 4},
              Term{.a = 2, .b = 0, .group = 5}, Term{.a = 1, .b = 2, .group = 6},
              Term{.a = 2, .b = 1, .group = 7}, Term{.a = 2, .b = 2, .group = 8}},
    .slices_a = 3,
    .slices_b = 3,
    .groups = 9,
    .k_block = quantensor_block,
    .k_step = 0};

template <int TermCount>
constexpr Program quantensor_program(const Structure<TermCount>& structure, bool by_maxima = false) {
  const int bits = by_maxima ? 0 : 7;
  std::array<int, max_groups> exponents{};
  for (const Term& term : structure.terms) exponents[term.group] = -bits * (term.a + term.b);
  const SplitRule split = quantised_split(structure.slices_a, bits);
  return {split, split, make_schedule(structure, 0, exponents)};
}

// Sets the parameters. Returns the first one that the scheme refuses; nullptr if there is none.
inline const Parameter* configure_quantensor(Program& program, std::span<const Parameter> parameters) {
  int slices = 2;
  bool by_maxima = false;
  for (const Parameter& parameter : parameters) {
    const auto number = parse_parameter(parameter.value, 1, 3);
    if (parameter.key == "slices" && number) {
      slices = *number;
    } else if (parameter.key == "scale" && parameter.value == "max") {
      by_maxima = true;
    } else {
      return &parameter;
    }
  }
  program = slices == 1   ? quantensor_program(quantensor_structure_1, by_maxima)
            : slices == 2 ? quantensor_program(quantensor_structure_2, by_maxima)
                          : quantensor_program(quantensor_structure_3, by_maxima);
  return nullptr;
}

inline constexpr Scheme quantensor{
    .name = "quantensor",
    .summary = "int8 quantisation of scaled rows and columns, refined with quantised residuals",
    .operands = OperandType::f32,
    .program = quantensor_program(quantensor_structure_2),
    .bound =
        "2^-8 (u_i ||b_j||_1 + v_j ||a_i||_1) + (2^-2 + 2^-16) k u_i v_j, 63.5 u_i <= max |a_ip| < 127 u_i, "
        "v_j likewise; slices=3: 2^-15 and nothing left out; scale=max: 254^(1 - slices) / 2 in place of 2^(6 - 7 slices)",
    .window = "none: the error is relative to the largest magnitude of each row and column",
    .source =
        "QuanTensor as mixpert describes it, Table 1 and sections 2.2 and 4; its scales are those of scale=max",
    .parameters = "slices=1...3, scale=max",
    .configure = configure_quantensor,
};

}  // namespace kintsugi::core::schemes
