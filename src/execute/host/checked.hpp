// Programs that check every computed element against the contract.
#pragma once

#include "execute/host/acceptance.hpp"
#include "execute/host/steps.hpp"
#include "schemes/magnitudes.hpp"

namespace kintsugi::core {

// Computes C = alpha * A * B + beta * C by the checked candidates of a plan:
//
//   One candidate runs on all of C, and every element is checked (recombine/residues.hpp).
//   Elements that do not pass are correctly rounded: by wider candidates, whose result counts if all numbers
//   that AB may be round to it, and at last by a superaccumulator.
//
// That candidate is the first for which most elements are proved, so bits depend on A and B alone, never on
// blocks or threads. If the contract is the correctly rounded result itself, it is the fastest one on the
// first tile. Returns the index of the candidate and its program, with the moduli that these operands need,
// and adds the number of elements that did not pass. With `grid`, elements that it accepts are left alone.
template <class T>
std::size_t multiply_checked(const Plan& plan, const Blocking& blocking, SideOf<T>& a, SideOf<T>& b,
                             const Operands& operands, const MatrixView<T>& c, Workspace workspace,
                             const GridElements* grid, Program& program, std::int64_t& recomputed_elements);

}  // namespace kintsugi::core
