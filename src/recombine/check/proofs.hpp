// Acceptance of single elements by a lower bound of |A||B|, before their products are computed.
#pragma once

#include <cstdint>

#include "recombine/accumulators.hpp"
#include "recombine/residues.hpp"

namespace kintsugi::core {

// Marks as proved the elements whose deviation plus one rounding is at most check.demand.coefficient times a
// lower bound of (|A||B|)_ij. Group 0 of `sums` has the product of magnitudes that were rounded down;
// multiplied by `unit` it is the lower bound in the units of the candidate's integer products. `parts` is 2
// for complex elements, which are proved if both parts are, else 1. The state of element (i, j) is states[i +
// j * sums.rows].
void prove_elements(const Accumulators& sums, int parts, const ElementCheck& check, double unit,
                    std::uint8_t* states, int threads);

}  // namespace kintsugi::core
