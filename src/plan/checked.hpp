// Programs whose every entry is checked against the contract once it is there.
#pragma once

#include "plan/steps.hpp"

namespace kintsugi::core {

// Magnitudes of scaled rows and columns in seven bits, rounded down: their products are a lower bound of |A||B|.
inline constexpr Structure<1> magnitude_structure{
    .terms = {Term{0, 0, 0}}, .slices_a = 1, .slices_b = 1, .groups = 1, .k_block = 65536, .k_step = 0};
inline constexpr Program magnitude_program = [] {
  SplitRule split = quantised_split(1, 0);
  split.kind = SplitKind::magnitude;
  return Program{split, split, make_schedule(magnitude_structure)};
}();

// C = alpha * A * B + beta * C by the checked rungs of a plan, one after the other:
//
//   one rung runs on all of C, and every entry is checked (recombine/residues.hpp);
//   entries that do not pass become the correctly rounded result: by the wider rungs, where all numbers that AB may be
//   round alike, at last by a superaccumulator.
//
// The rung is the first that most of all entries are proved for; so bits depend on A and B alone, never on blocks or
// threads. Where the contract is the correctly rounded result itself, it is the one that serves the first tile. Returns
// the index of the rung, and adds the number of entries that did not pass it.
template <class T>
std::size_t multiply_checked(const Plan& plan, const Blocking& blocking, SideOf<T>& a, SideOf<T>& b,
                             const Operands& operands, const MatrixView<T>& c, Workspace workspace,
                             std::int64_t& mended_entries);

}  // namespace kintsugi::core
