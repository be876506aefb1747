// Random calls of the routines with vectors.
#pragma once

#include <cstdint>
#include <vector>

namespace kintsugi::test {

// Their names.
const std::vector<const char*>& vector_names();

// Calls names at random and checks every element of the memory that they write. Vectors and matrices hold
// small integers, and NaN wherever a routine must not read. `emulated` says that every call that Kintsugi can
// answer must reach it, else that none may. Returns the number of failures.
int check_vectors(std::uint64_t seed, long long cases, bool emulated);

}  // namespace kintsugi::test
