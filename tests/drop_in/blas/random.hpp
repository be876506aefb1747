#pragma once

#include <cstdint>

namespace kintsugi::test {

// Multiplies random matrices by all names in turn and compares with the naive loop; a line for each failure,
// with what repeats it. Returns their number. `forwarded`: another BLAS may multiply, so that alpha = 0 comes
// without NaN and infinities in A and B, at which OpenBLAS's kernels for small products look (0.3.21).
int check_random(std::uint64_t seed, std::int64_t first, std::int64_t cases, bool forwarded);

}  // namespace kintsugi::test
