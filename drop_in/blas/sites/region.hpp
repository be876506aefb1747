// Memory of the matrices of a call.
#pragma once

#include <cstdint>
#include <vector>

#include "blas/call.hpp"
#include "common/sites/region.hpp"

namespace kintsugi::blas {

using drop_in::Region;

std::int64_t element_bytes(kintsugi_type type);

// Returns the matrices that a call with right arguments reads. A and B are read unless k = 0. C is read
// unless beta = 0; routines that work in place always read C. A routine without B has an empty region for B.
std::vector<Region> inputs_of(const Call& call);
Region output_of(const Call& call);

}  // namespace kintsugi::blas
