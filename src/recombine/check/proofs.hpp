// Proofs of elements before their products are computed.
#pragma once

#include <cstdint>

#include "recombine/accumulators.hpp"
#include "recombine/residues.hpp"

namespace kintsugi::core {

// Marks as proved the open elements whose deviation and one rounding are at most coefficient times a lower
// bound of (|A||B|)_ij: sums_0 * unit, where sums_0 holds products of magnitudes rounded down and `unit` is
// their unit in the integers' products. Both parts of a complex element must be proved. open(i, j) is element
// i + j rows.
void prove_elements(const Accumulators& sums, int parts, const ElementCheck& check, double unit,
                    std::uint8_t* open, int threads);

}  // namespace kintsugi::core
