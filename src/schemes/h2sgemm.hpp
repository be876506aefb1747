// h2sgemm: tunable residual scaling, three products, term-wise sums.
//
//   a0 = RN16(a), a1 = RN16((a - a0) 2^sb)         sb = 12 by default
//   S1 = a1 b0, S2 = a0 b1, S3 = a0 b0             each over all of k in an accumulator of its own
//   C  = 2^-sb S1 + 2^-sb S2 + S3                  small terms first
//
// The parameter sb=N sets sb. sb=eq6 takes the largest sb that cannot overflow. With E the largest exponent
// of both operands, residuals are at most 2^(E - 11), so sb = 26 - E keeps them within 2^15. A given sb is
// lowered to 26 - E if the operands require it. Eq. 6 of the paper allows one more, 27 - E. That is 12 for E
// = 15, with which the residual 16 of x = 32784 (a0 = 32768) overflows. With E = 15 the high part is
// truncated, since it would round to infinity from 65520 on. Residuals are then below 2^5, and sb is at most
// 10. |x| >= 2^16 is an error instead of a silent infinity.
#pragma once

#include <array>

#include "base/status.hpp"
#include "formats/formats.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

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

}  // namespace kintsugi::core::schemes
