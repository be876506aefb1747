// Proves single elements by a lower bound of |A||B|, before their products are computed.
#pragma once

#include <cstdint>

#include "recombine/accumulators.hpp"
#include "recombine/residues.hpp"

namespace kintsugi::core {

// Marks elements as proved if their deviation plus one rounding is at most check.demand.coefficient times a
// lower bound of (|A||B|)_ij. The lower bound, in the units of the candidate's integer products, is `unit`
// times group 0 of `sums`: the product of magnitudes that were rounded down. `parts`: 2 for complex elements,
// else 1; a complex element is proved if both parts are. The state of element (i, j) is states[i + j *
// sums.rows].
void prove_elements(const Accumulators& sums, int parts, const ElementCheck& check, double unit,
                    std::uint8_t* states, int threads);

}  // namespace kintsugi::core
