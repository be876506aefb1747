// Which elements are proved before their products are there.
#pragma once

#include <cstdint>

#include "recombine/accumulators.hpp"
#include "recombine/residues.hpp"

namespace kintsugi::core {

// sums_0 holds products of magnitudes rounded down, `unit` each in the integers' products: sum * unit is a
// lower bound of (|A||B|)_ij. Open elements whose deviation and one rounding are at most coefficient times it
// are marked as proved; of an element of two parts, both must be. open(i, j) is element i + j rows.
void prove_elements(const Accumulators& sums, int parts, const ElementCheck& check, double unit,
                    std::uint8_t* open, int threads);

}  // namespace kintsugi::core
