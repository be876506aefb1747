// Random calls of all names.
#pragma once

#include <cstdint>

namespace kintsugi::test {

// Calls names at random with random products and checks every result, and that C's padding, A and B are as
// they were. `emulated` says that every call must reach Kintsugi, else that none may. Returns the number of
// failures.
int check_random(std::uint64_t seed, long long cases, bool emulated);

// The same from several threads at once, each with a handle of its own.
int check_threads(std::uint64_t seed, long long cases, bool emulated);

}  // namespace kintsugi::test
