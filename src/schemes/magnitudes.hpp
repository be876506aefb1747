// Programs that multiply magnitudes. Their products are bounds of |A||B| of the scaled operands.
#pragma once

#include "arith/residue/residue_scale.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core {

inline constexpr Structure<1> magnitude_structure{.terms = {Term{.a = 0, .b = 0}},
                                                  .slices_a = 1,
                                                  .slices_b = 1,
                                                  .groups = 1,
                                                  .k_block = 65536,
                                                  .k_step = 0};

// Magnitudes rounded down to seven bits: a lower bound.
inline constexpr Program magnitude_program = [] {
  SplitRule split = quantised_split(1, 0);
  split.kind = SplitKind::magnitude;
  return Program{split, split, make_schedule(magnitude_structure)};
}();

// Magnitudes rounded up, at most 2^(product_digits + 1): an upper bound.
inline constexpr Program magnitude_above_program = [] {
  SplitRule split = scaled_split(int8, {.slices = 1, .top_exponent = product_digits});
  split.kind = SplitKind::magnitude_above;
  return Program{split, split, make_schedule(magnitude_structure)};
}();

}  // namespace kintsugi::core
