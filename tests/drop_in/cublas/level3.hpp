// Random calls of the level-3 routines that consist of products.
#pragma once

#include <cstdint>
#include <vector>

namespace kintsugi::test {

// Their names.
const std::vector<const char*>& level3_names();

// Calls names at random and checks every element of C's memory, the triangle that is not written among them.
// Matrices hold small integers, so that every order of additions gives the same bits, and NaN wherever a
// routine must not read. `emulated` says that every call of a large enough order must reach Kintsugi, else
// that none may. Returns the number of failures.
int check_level3(std::uint64_t seed, long long cases, bool emulated);

// Calls that must go to cuBLAS, and those whose products fail. Under the policy emulate.
int check_level3_semantics();

}  // namespace kintsugi::test
