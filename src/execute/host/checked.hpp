// Checked programs on the host: every element that they compute is checked against the contract.
#pragma once

#include "execute/host/acceptance.hpp"
#include "execute/host/steps.hpp"
#include "schemes/magnitudes.hpp"

namespace kintsugi::core {

// Computes C = alpha * A * B + beta * C by the checked candidates of a plan:
//
//   One candidate, the main one, computes all of C, and every element is checked (recombine/residues.hpp).
//   Elements that do not pass are recomputed and correctly rounded: by wider candidates, whose result counts
//   only if it is proved to be correctly rounded, and at last by a superaccumulator.
//
// The main candidate is the first for which most elements are proved, so that bits depend on A and B alone,
// never on blocks or threads. For the contract `exact`, under which all candidates give the same bits, it is
// the one that is fastest on the first tile of C. Elements that `grid` accepts are left as they are.
//
// Returns the index of the main candidate. Sets `program` to its program, with the moduli that these operands
// need, and adds the number of elements that did not pass to `recomputed_elements`.
template <class T>
std::size_t multiply_checked(const Plan& plan, const Blocking& blocking, SideOf<T>& a, SideOf<T>& b,
                             const Operands& operands, const MatrixView<T>& c, Workspace workspace,
                             const GridElements* grid, Program& program, std::int64_t& recomputed_elements);

}  // namespace kintsugi::core
