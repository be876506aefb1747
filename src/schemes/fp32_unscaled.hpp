// Emulations of FP32 by slices of unscaled elements, from the literature: markidis, egemm, ootomo,
// ootomo-tf32, legemm, h2sgemm, h2sgemm-element and tf32x3; and the baselines fp16, bf16 and tf32, which are
// single products.
#pragma once

#include <array>

#include "base/status.hpp"
#include "formats/formats.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

// fp16: one product of operands rounded to half precision; the baseline without emulation.
//
//   a0 = fp16(a), b0 = fp16(b)                     round to nearest even, no scaling
//   C  = a0 b0                                     one accumulator, all of k inside the engine

inline constexpr SplitRule fp16_split = nearest_split(core::fp16, 1);

inline constexpr Scheme fp16{
    .name = "fp16",
    .summary = "single fp16 product, the baseline",
    .operands = OperandType::f32,
    .program = {fp16_split, fp16_split, make_schedule(single_product)},
    .bound =
        "2 * 2^-11 |A||B| + accumulation inside the engine over all k; 2^-25 absolute per element below "
        "2^-14",
    .window = "2^-14 <= |x| < 2^15; from 65520 on elements become infinity",
    .source = "baseline of every paper",
};

// bf16: one product of operands rounded to bfloat16; the baseline without emulation.
//
//   a0 = bf16(a), b0 = bf16(b)                     round to nearest even, no scaling
//   C  = a0 b0                                     one accumulator, all of k inside the engine

inline constexpr SplitRule bf16_split = nearest_split(core::bf16, 1);

inline constexpr Scheme bf16{
    .name = "bf16",
    .summary = "single bf16 product, the baseline",
    .operands = OperandType::f32,
    .program = {bf16_split, bf16_split, make_schedule(single_product)},
    .bound =
        "2 * 2^-8 |A||B| + accumulation inside the engine over all k; 2^-134 absolute per element below "
        "2^-126",
    .window = "2^-126 <= |x| < 2^127; the largest numbers round to infinity",
    .source = "baseline of every paper",
};

// tf32: one product of operands rounded to TensorFloat-32; the baseline without emulation.
//
//   a0 = tf32(a), b0 = tf32(b)                     round to nearest even, no scaling
//   C  = a0 b0                                     one accumulator, all of k inside the engine

inline constexpr SplitRule tf32_split = nearest_split(core::tf32, 1);

inline constexpr Scheme tf32{
    .name = "tf32",
    .summary = "single tf32 product, the baseline",
    .operands = OperandType::f32,
    .program = {tf32_split, tf32_split, make_schedule(single_product)},
    .bound =
        "2 * 2^-11 |A||B| + accumulation inside the engine over all k; 2^-137 absolute per element below "
        "2^-126",
    .window = "2^-126 <= |x| < 2^127; the largest numbers round to infinity",
    .source = "baseline of every paper",
};

// markidis: the first fp16 emulation of FP32 on tensor cores, four products in one accumulator.
//
//   a0 = RZ16(a), a1 = RZ16(a - a0)                truncation, residual unscaled
//   C  = a1 b1 + a1 b0 + a0 b1 + a0 b0             one accumulator, all of k inside the engine
//
// The four terms alternate after every 16 inner indices, as in a kernel that loads a tile of each slice once
// and issues four matrix instructions on it.

inline constexpr SplitRule markidis_split{.format = &core::fp16,
                                          .slices = 2,
                                          .first_rounding = Rounding::towards_zero,
                                          .residual_rounding = Rounding::towards_zero,
                                          .residual_exponent = 0,
                                          .scale_vectors = false,
                                          .top_exponent = 0};

inline constexpr Structure<4> markidis_structure{
    .terms = {Term{.a = 1, .b = 1}, Term{.a = 1, .b = 0}, Term{.a = 0, .b = 1}, Term{.a = 0, .b = 0}},
    .slices_a = 2,
    .slices_b = 2,
    .groups = 1,
    .k_block = 0,
    .k_step = 16,
};

inline constexpr Scheme markidis{
    .name = "markidis",
    .summary = "two truncated fp16 slices, four products, all sums inside the engine",
    .operands = OperandType::f32,
    .program = {markidis_split, markidis_split, make_schedule(markidis_structure)},
    .bound =
        "2 * 2^-21 |A||B| + accumulation inside the engine, growing linearly with k; 2^-24 absolute per "
        "element below 2^-3",
    .window = "2^-3 <= |x| < 2^15; larger elements lose everything above 2 * 65504",
    .source =
        "Markidis et al., NVIDIA Tensor Core Programmability, Performance & Precision (2018); "
        "fp16-emulation-study; h2sgemm Table 1",
};

// egemm: as markidis, with rounding to nearest.
//
//   a0 = RN16(a), a1 = RN16(a - a0)                residual unscaled
//   C  = a1 b1 + a1 b0 + a0 b1 + a0 b0             one accumulator, all of k inside the engine
//
// The four terms alternate after every 16 inner indices: the structure is that of markidis.

inline constexpr SplitRule egemm_split = nearest_split(core::fp16, 2);

inline constexpr Scheme egemm{
    .name = "egemm",
    .summary = "two fp16 slices rounded to nearest, four products, all sums inside the engine",
    .operands = OperandType::f32,
    .program = {egemm_split, egemm_split, make_schedule(markidis_structure)},
    .bound =
        "2 * 2^-23 |A||B| + accumulation inside the engine, growing linearly with k; 2^-25 absolute per "
        "element below 2^-2",
    .window = "2^-2 <= |x| < 2^15; from 65520 on elements become infinity",
    .source = "Feng et al., EGEMM-TC (2021); h2sgemm Table 1",
};

// ootomo: scaled residuals, and every instruction's sum added outside the tensor core.
//
//   a0 = RN16(a), a1 = RN16((a - a0) 2^11)
//   for every 16 inner indices (one instruction):
//     main  = main  + [a0 b0]                      fp32 to nearest, outside the engine
//     cross = cross + [a1 b0 + a0 b1]
//   C = main + 2^-11 cross
//
// [...] is summed inside the tensor core.
//
// The authors' kernels add only the main sum outside; the cross terms, 2^-11 of it, stay inside.

inline constexpr SplitRule ootomo_split = nearest_split(core::fp16, 2, 11);

// Structure for instructions of `instruction_k` products, whose sums are added outside the engine.
constexpr Structure<3> ootomo_structure(std::int32_t instruction_k) {
  return {.terms = {Term{.a = 1, .b = 0, .group = 1}, Term{.a = 0, .b = 1, .group = 1}, Term{.a = 0, .b = 0}},
          .slices_a = 2,
          .slices_b = 2,
          .groups = 2,
          .k_block = instruction_k,
          .k_step = 0};
}

inline constexpr Structure<3> ootomo_fp16_structure = ootomo_structure(16);

inline constexpr Scheme ootomo{
    .name = "ootomo",
    .summary = "two fp16 slices, residual scaled by 2^11, three products, sums outside the engine",
    .operands = OperandType::f32,
    .program = {ootomo_split, ootomo_split, make_schedule(ootomo_fp16_structure, 0, {0, -11})},
    .bound = "(2^-21 + accumulation of 16 products inside and of k / 16 sums outside) |A||B|",
    .window = "2^-13 <= |x| < 2^15; from 65520 on elements become infinity",
    .source =
        "Ootomo and Yokota, Recovering single precision accuracy from Tensor Cores (2022); "
        "fp16-emulation-study",
};

// ootomo-tf32: scaled residuals, and every instruction's sum added outside the tensor core.
//
//   a0 = RN_tf32(a), a1 = RN_tf32((a - a0) 2^11)
//   for every 8 inner indices (one instruction):
//     main  = main  + [a0 b0]                      fp32 to nearest, outside the engine
//     cross = cross + [a1 b0 + a0 b1]
//   C = main + 2^-11 cross
//
// [...] is summed inside the tensor core.

inline constexpr SplitRule ootomo_tf32_split = nearest_split(core::tf32, 2, 11);

inline constexpr Structure<3> ootomo_tf32_structure = ootomo_structure(8);

inline constexpr Scheme ootomo_tf32{
    .name = "ootomo-tf32",
    .summary = "two tf32 slices, residual scaled by 2^11, three products, sums outside the engine",
    .operands = OperandType::f32,
    .program = {ootomo_tf32_split, ootomo_tf32_split, make_schedule(ootomo_tf32_structure, 0, {0, -11})},
    .bound = "(2^-21 + accumulation of 8 products inside and of k / 8 sums outside) |A||B|",
    .window = "2^-125 <= |x| < 2^127",
    .source =
        "Ootomo and Yokota, Recovering single precision accuracy from Tensor Cores (2022); "
        "fp16-emulation-study",
};

// legemm: bit-cut high part, residual x 2^10 towards zero, two accumulators inside the engine.
//
//   a0 = bit-cut(a), a1 = RZ16((a - a0) 2^10)
//   acc0 = a0 b0;  acc1 = a0 b1 + a1 b0            over all of k, alternating every 16 inner indices
//   C = acc0 + 2^-10 acc1
//
// bit-cut is the paper's word for truncation without gradual underflow: the leading bits are copied. Elements
// below 2^-14 have a0 = 0. Only a1 represents them, with the bits that fp16 keeps of 2^10 a.

inline constexpr SplitRule legemm_split{.format = &core::fp16,
                                        .slices = 2,
                                        .first_rounding = Rounding::bit_cut,
                                        .residual_rounding = Rounding::towards_zero,
                                        .residual_exponent = 10,
                                        .scale_vectors = false,
                                        .top_exponent = 0};

inline constexpr Structure<3> legemm_structure{
    .terms = {Term{.a = 0, .b = 0}, Term{.a = 0, .b = 1, .group = 1}, Term{.a = 1, .b = 0, .group = 1}},
    .slices_a = 2,
    .slices_b = 2,
    .groups = 2,
    .k_block = 0,
    .k_step = 16,
};

inline constexpr Scheme legemm{
    .name = "legemm",
    .summary =
        "bit-cut high part, residual scaled by 2^10, three products, two accumulators inside the engine",
    .operands = OperandType::f32,
    .program = {legemm_split, legemm_split, make_schedule(legemm_structure, 0, {0, -10})},
    .bound =
        "(2 * 2^-21 + 2^-20) |A||B| + accumulation inside the engine, growing linearly with k; 2^-25 "
        "absolute per element below 2^-13",
    .window = "2^-13 <= |x| < 2^15; from 65536 on elements become infinity",
    .source = "LE-GEMM, section 4.1, Eqs. 5-11 and Algorithm 1",
};

// h2sgemm: tunable residual scaling, three products, term-wise sums.
//
//   a0 = RN16(a), a1 = RN16((a - a0) 2^sb)         sb = 12 by default
//   S1 = a1 b0, S2 = a0 b1, S3 = a0 b0             each over all of k in an accumulator of its own
//   C  = 2^-sb S1 + 2^-sb S2 + S3                  small terms first
//
// The parameter sb=N sets sb. sb=eq6 takes the largest sb that cannot overflow. With E the largest exponent
// of both operands, residuals are at most 2^(E - 11), so sb = 26 - E keeps them within 2^15. The default
// is lowered to 26 - E if the operands require it; for a given sb they are refused. Eq. 6 of the paper allows
// one more, 27 - E. That is 12 for E = 15, with which the residual 16 of x = 32784 (a0 = 32768) overflows.
// With E = 15 the high part is truncated, since it would round to infinity from 65520 on. Residuals are then
// below 2^5, and sb is at most 10. |x| >= 2^16 is an error instead of a silent infinity.

inline constexpr SplitRule h2sgemm_split = nearest_split(core::fp16, 2, 12);

inline constexpr Structure<3> h2sgemm_structure{
    .terms = {Term{.a = 1, .b = 0}, Term{.a = 0, .b = 1, .group = 1}, Term{.a = 0, .b = 0, .group = 2}},
    .slices_a = 2,
    .slices_b = 2,
    .groups = 3,
    .k_block = 0,
    .k_step = 0,
};

inline constexpr std::array h2sgemm_cross_groups{0, 1};
// Value of sb for sb=eq6. It is above every valid sb, so adapt_h2sgemm() lowers it to the largest one that
// the operands allow.
inline constexpr int h2sgemm_eq6 = max_residual_exponent + 1;

// Sets the parameters. Returns the first one that the scheme refuses; nullptr if there is none.
inline const Parameter* configure_h2sgemm(Program& program, std::span<const Parameter> parameters) {
  for (const Parameter& parameter : parameters) {
    const auto exponent =
        parameter.value == "eq6" ? h2sgemm_eq6 : parse_parameter(parameter.value, 0, max_residual_exponent);
    if (parameter.key != "sb" || !exponent) return &parameter;
    program.set_residual_exponent(*exponent, h2sgemm_cross_groups);
    program.keeps_residual_exponent = *exponent != h2sgemm_eq6;
  }
  return nullptr;
}

inline void adapt_h2sgemm(Program& program, const RangeSummary& a, const RangeSummary& b, std::int64_t) {
  const int largest = a.largest > b.largest ? a.largest : b.largest;
  if (largest > core::fp16.max_exponent) {
    fail(Status::contract_unreachable,
         "h2sgemm splits magnitudes below 2^16 and the largest magnitude in A and B is 2^{} or more; "
         "fp16x3-wide scales rows and columns",
         largest);
  }
  if (largest > program.largest_fitted_exponent()) {
    fail(
        Status::contract_unreachable,
        "h2sgemm: sb={} overflows the residuals of magnitudes from 2^{} on, and the largest magnitude in A and B "
        "is 2^{} or more; sb=eq6 takes {} there, fp16x3-wide scales rows and columns",
        program.split_a.residual_exponent, program.largest_fitted_exponent() + 1, largest,
        fit_residual(core::fp16, h2sgemm_eq6, largest).residual_exponent);
  }
  program.set_residual_fit(fit_residual(core::fp16, program.split_a.residual_exponent, largest),
                           h2sgemm_cross_groups);
}

inline constexpr Scheme h2sgemm{
    .name = "h2sgemm",
    .summary = "two fp16 slices, residual scaled by 2^sb, three products summed matrix by matrix",
    .operands = OperandType::f32,
    .program = {h2sgemm_split, h2sgemm_split, make_schedule(h2sgemm_structure, 0, {-12, -12, 0})},
    .bound = "2^-21 |A||B| + accumulation inside the engine over all of k",
    .window = "2^-14 <= |x| < 2^15 for sb = 12, 2^(-2 - sb) <= |x| in general; an error from 2^16 on",
    .source = "h2sgemm sections 3.1 and 3.2, Eqs. 6 and 7, Fig. 7(b)",
    .parameters = "sb=0...40, or sb=eq6 for what the operands' exponents allow",
    .configure = configure_h2sgemm,
    .adapt = adapt_h2sgemm,
    .fitted_groups = h2sgemm_cross_groups,
};

// h2sgemm-element: h2sgemm with the three terms summed element by element.
//
//   a0 = RN16(a), a1 = RN16((a - a0) 2^sb), sb as in h2sgemm
//   for every 16 inner indices (one step of the cube unit):
//     C = ((C + 2^-sb [a1 b0]) + 2^-sb [a0 b1]) + [a0 b0]     fp32, one sum for all terms

inline constexpr Structure<3> h2sgemm_element_structure{
    .terms = {Term{.a = 1, .b = 0}, Term{.a = 0, .b = 1, .group = 1}, Term{.a = 0, .b = 0, .group = 2}},
    .slices_a = 2,
    .slices_b = 2,
    .groups = 3,
    .k_block = 16,
    .k_step = 0,
    .joint = true,
};

inline constexpr Scheme h2sgemm_element{
    .name = "h2sgemm-element",
    .summary = "h2sgemm with its three terms summed element by element",
    .operands = OperandType::f32,
    .program = {h2sgemm_split, h2sgemm_split, make_schedule(h2sgemm_element_structure, 0, {-12, -12, 0})},
    .bound = "2^-21 |A||B| + accumulation of 16 products inside and of 3 k / 16 sums outside",
    .window = "2^-14 <= |x| < 2^15 for sb = 12, 2^(-2 - sb) <= |x| in general; an error from 2^16 on",
    .source = "h2sgemm section 3.2, Fig. 7(a)",
    .parameters = h2sgemm.parameters,
    .configure = configure_h2sgemm,
    .adapt = adapt_h2sgemm,
    .fitted_groups = h2sgemm_cross_groups,
};

// tf32x3: three TF32 products, small terms first, as CUTLASS's 3xTF32.
//
//   a0 = RN_tf32(a), a1 = RN_tf32(a - a0)          residual unscaled: tf32 has fp32's exponents
//   C  = a1 b0 + a0 b1 + a0 b0                     one accumulator inside the engine, alternating every 8

inline constexpr SplitRule tf32x3_split = nearest_split(core::tf32, 2);

inline constexpr Structure<3> tf32x3_structure{
    .terms = {Term{.a = 1, .b = 0}, Term{.a = 0, .b = 1}, Term{.a = 0, .b = 0}},
    .slices_a = 2,
    .slices_b = 2,
    .groups = 1,
    .k_block = 0,
    .k_step = 8,
};

inline constexpr Scheme tf32x3{
    .name = "tf32x3",
    .summary = "two tf32 slices, three products, all sums inside the engine",
    .operands = OperandType::f32,
    .program = {tf32x3_split, tf32x3_split, make_schedule(tf32x3_structure)},
    .bound = "2^-21 |A||B| + accumulation inside the engine, growing linearly with k",
    .window = "2^-114 <= |x| < 2^127; the largest numbers round to infinity",
    .source = "CUTLASS 3xTF32",
};

}  // namespace kintsugi::core::schemes
