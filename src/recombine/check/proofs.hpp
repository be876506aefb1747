// Acceptance of single elements by a lower bound of |A||B|, before their products are computed.
#pragma once

#include <cstdint>

#include "recombine/accumulators.hpp"
#include "recombine/residues.hpp"

namespace kintsugi::core {

// Marks as proved the elements whose deviation and one rounding are at most check.demand.coefficient times a
// lower bound of (|A||B|)_ij. The bound is `unit` times group 0 of `sums`, the product of magnitudes that
// were rounded down; `unit` converts it to the units of the candidate's integer products. A complex element
// is proved if both parts are. The state of element (i, j) is open[i + j * sums.rows].
void prove_elements(const Accumulators& sums, int parts, const ElementCheck& check, double unit,
                    std::uint8_t* open, int threads);

}  // namespace kintsugi::core
