#pragma once

#include <cstdint>

namespace kintsugi::test {

// Multiplies random matrices by all names in turn and compares with the naive loop; a line for each failure, with what
// repeats it. Returns their number.
int check_random(std::uint64_t seed, std::int64_t first, std::int64_t cases);

}  // namespace kintsugi::test
