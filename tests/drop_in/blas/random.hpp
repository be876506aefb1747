#pragma once

#include <cstdint>
#include <string>

#include "tests/drop_in/blas/entries.hpp"
#include "tests/drop_in/blas/matrix.hpp"

namespace kintsugi::test {

// Calls a name with random matrices and compares with the naive loop. What was wrong and in which call; ""
// for nothing.
std::string run_case(const Entry& entry, const Random& random, bool forwarded);

// Calls the names of routines with vectors in turn, as check_random() does those of level 3. `exact`: every
// result must be the exact one, rounded once.
int check_vectors(std::uint64_t seed, std::int64_t first, std::int64_t cases, bool forwarded, bool exact);

// Calls all names in turn; a line for each failure, with what repeats it. Returns their number. `forwarded`:
// another BLAS may compute, so that what only the emulation promises is not asked for: that NaN and
// infinities in A and B meet no element beside a triangle, and are left alone where alpha = 0. There an
// element of gemm may also have the class of 0 (A B) + beta C, since OpenBLAS 0.3.21's kernels for small
// products compute that.
int check_random(std::uint64_t seed, std::int64_t first, std::int64_t cases, bool forwarded);

// Multiplies matrices with NaN and infinities at random places by every name of gemm. NaN and infinities of
// real products must be where the naive loop has them, those of complex ones anywhere in the same elements.
// Prints each failure and returns their number.
int check_special_values(std::uint64_t seed, std::int64_t cases, bool forwarded);

}  // namespace kintsugi::test
