// ozaki-fp16: DGEMM-TC, the Ozaki scheme on fp16 slices whose products are exact in fp32.
//
//   a    = 2^c_A[1] a_1 + 2^c_A[2] a_2 + ...      integers, |a_p| <= 2^bits, k 2^(2 bits) <= 2^24; each row
//                                                 and slice has a c_A
//   T_pq = a_p b_q                                exact in fp32, hence in any matrix unit; sums over
//                                                 several blocks of k are added as integers
//   C    = sum over q, p of 2^(c_A[p] + c_B[q]) T_pq
//
// mode=dp, sp: Algorithm 3 decides the number of slices d. Products with p + q <= d + 1 are summed in FP64.
// mode=cr: Elements are split until no residual is left. The sum of all products is exact and rounded once.
#pragma once

#include <array>

#include "formats/formats.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

// Structure of the products of all slices of A with one slice of B, each in a group of its own.
inline constexpr auto ozaki1_structure = [] {
  Structure<Ozaki1Parameters::max_slices> structure{.terms = {},
                                                    .slices_a = Ozaki1Parameters::max_slices,
                                                    .slices_b = 1,
                                                    .groups = Ozaki1Parameters::max_slices,
                                                    .k_block = 0,
                                                    .k_step = 0};
  for (int p = 0; p < Ozaki1Parameters::max_slices; ++p) {
    const auto index = static_cast<std::int16_t>(p);
    structure.terms[p] = {.a = index, .b = 0, .group = index};
  }
  return structure;
}();

constexpr Program ozaki1_program(const Format& format, Ozaki1Parameters::Mode mode) {
  // The largest number of bits, for k = 1; fit_ozaki1() sets the number for the problem's k.
  SplitRule split = scaled_split(format, {.slices = Ozaki1Parameters::max_slices,
                                          .residual_exponent = format.id == FormatId::fp64 ? 26 : 11});
  split.kind = SplitKind::successive;
  Program program{split, split, make_schedule(ozaki1_structure), Recombination::ozaki1};
  program.schedule.integer_sums = true;
  program.ozaki1.mode = mode;
  return program;
}

// Defined in schemes/ozaki_fp.cpp, also for ozaki-fp64.
const Parameter* configure_ozaki1(Program& program, std::span<const Parameter> parameters);
void fit_ozaki1(Program& program, OperandType type, std::int64_t k);

inline constexpr std::string_view ozaki1_parameters =
    "mode=dp|sp|cr (accuracy of FP64, of FP32, correctly rounded), "
    "slices=1...32 (of each operand, instead of Algorithm 3; not with cr), "
    "fast=on|off (leave out products of slices p and q with p + q > d + 1, d the number of slices; "
    "not with cr), "
    "block=128...65536 (rows and columns of C that have a number of slices of their own), "
    "k-block=0...65536 (inner indices after which sums are added outside the engine; 0: 65536), "
    "grid=integer|sigma (rounding of slices: one grid for both signs, or fl((x + sigma) - sigma) as "
    "Algorithm 1 has it)";

inline constexpr Scheme ozaki_fp16{
    .name = "ozaki-fp16",
    .summary = "DGEMM-TC: integer slices in fp16, products without an error, as many as the operands ask for",
    .operands = {OperandType::f32, OperandType::f64},
    .program = ozaki1_program(core::fp16, Ozaki1Parameters::Mode::by_operand_type),
    .bound =
        "mode=cr: correctly rounded; else "
        "r (u_i ||b_j||_1 + v_j ||a_i||_1 + (r + 2 (d - 1) / (1 - 2^-(b + 1))) k u_i v_j), "
        "r = 2^(1 - d (b + 1)), for d slices of b bits (with grid=sigma of b - 1), "
        "u_i <= max |a_ip| < 2 u_i, v_j likewise, + (N + 1) 2^-53 of all N products",
    .window =
        "mode=cr: vectors of at most 32 slices, else an error; mode=dp, sp: Algorithm 3's estimate of d is "
        "no bound",
    .source = "Mukunoki, Ozaki, Ogita and Imamura, DGEMM using Tensor Cores (dgemm-tc)",
    .parameters = ozaki1_parameters,
    .configure = configure_ozaki1,
    .fit = fit_ozaki1,
};

// ozaki-fp64: the Ozaki scheme on fp64 slices, products by FP64 GEMM (DGEMM-DP-CR of dgemm-tc's Table 1).
//
// Like ozaki-fp16, with k 2^(2 bits) <= 2^53, and mode=cr by default.

inline constexpr Scheme ozaki_fp64{
    .name = "ozaki-fp64",
    .summary = "DGEMM-DP-CR: integer slices in fp64, products without an error, correctly rounded",
    .operands = {OperandType::f32, OperandType::f64},
    .program = ozaki1_program(core::fp64, Ozaki1Parameters::Mode::cr),
    .bound = "that of ozaki-fp16",
    .window = "that of ozaki-fp16",
    .source = "Mukunoki, Ozaki, Ogita and Imamura, DGEMM using Tensor Cores (dgemm-tc), Table 1",
    .parameters = ozaki1_parameters,
    .configure = configure_ozaki1,
    .fit = fit_ozaki1,
};

}  // namespace kintsugi::core::schemes
