// Memory of the matrices of a call.
#pragma once

#include <vector>

#include "common/sites/region.hpp"
#include "cublas/call.hpp"

namespace kintsugi::cublas {

// Return the matrices that a call with right arguments reads and writes: A and B unless k = 0, and C unless
// beta is known to be 0. The matrices of a strided batch are one region: all columns if these have equal
// distances (stride = ld * columns), else the range from the first to the last byte. Batches by pointers have
// none, since the pointers are in device memory.
std::vector<drop_in::Region> inputs_of(const Call& call, bool reads_c);
drop_in::Region output_of(const Call& call);

}  // namespace kintsugi::cublas
