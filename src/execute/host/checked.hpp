// Programs whose every element is checked against the contract once it is there.
#pragma once

#include "execute/host/steps.hpp"
#include "schemes/magnitudes.hpp"

namespace kintsugi::core {

// C = alpha * A * B + beta * C by the checked candidates of a plan, one after the other:
//
//   one candidate runs on all of C, and every element is checked (recombine/residues.hpp);
//   elements that do not pass become the correctly rounded result: by the wider candidates, where all numbers
//   that AB may be round alike, at last by a superaccumulator.
//
// The candidate is the first that most of all elements are proved for; so bits depend on A and B alone, never
// on blocks or threads. Where the contract is the correctly rounded result itself, it is the one that serves
// the first tile. Returns the index of the candidate and its program, with the moduli that these operands
// need, and adds the number of elements that did not pass it.
template <class T>
std::size_t multiply_checked(const Plan& plan, const Blocking& blocking, SideOf<T>& a, SideOf<T>& b,
                             const Operands& operands, const MatrixView<T>& c, Workspace workspace,
                             Program& program, std::int64_t& recomputed_elements);

}  // namespace kintsugi::core
