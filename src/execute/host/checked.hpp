// Checked programs on the host. Every element that they compute is checked against the contract.
#pragma once

#include "execute/host/acceptance.hpp"
#include "execute/host/operand.hpp"
#include "schemes/magnitudes.hpp"

namespace kintsugi::core {

// Computes C = alpha * A * B + beta * C by the checked candidates of a plan:
//
// - The main candidate computes all of C, and every element is checked (recombine/residues.hpp).
// - Elements that do not pass the check are recomputed and correctly rounded: by wider candidates if their
//   result is proved to be correctly rounded, and at last by a superaccumulator.
//
// Under `exact` all candidates give the same bits, so the main candidate is the one that is fastest on the
// first tile of C. Under other contracts it is the first one that proves most elements. This choice depends
// on A and B, but not on blocks or threads. Elements that `grid` accepts are not computed.
//
// Returns the index of the main candidate. Sets `program` to its program, with the moduli that these operands
// need. Adds the number of elements that did not pass the main candidate's check to `recomputed_elements`.
template <class T>
std::size_t multiply_checked(const Plan& plan, const Blocking& blocking, SideOf<T>& a, SideOf<T>& b,
                             const Operands& operands, const MatrixView<T>& c, Workspace workspace,
                             const GridElements* grid, Program& program, std::int64_t& recomputed_elements);

}  // namespace kintsugi::core
