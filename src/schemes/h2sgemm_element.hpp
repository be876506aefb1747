// h2sgemm-element: h2sgemm with the three terms summed element by element.
//
//   a0 = RN16(a), a1 = RN16((a - a0) 2^sb), sb as in h2sgemm
//   for every 16 inner indices (one step of the cube unit):
//     C = ((C + 2^-sb [a1 b0]) + 2^-sb [a0 b1]) + [a0 b0]     fp32, one sum for all terms
#pragma once

#include "schemes/h2sgemm.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

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
