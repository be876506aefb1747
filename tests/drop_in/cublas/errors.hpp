// Products with rounding errors. The program computes their Eq. 10 (MixPert) itself, to compare the
// drop-in's report with it.
#pragma once

namespace kintsugi::test {

// Multiplies from two functions that call one wrapper, three calls each. Prints for each function its name,
// the relative error of all its results as one matrix, and that of the worst call. Returns 0.
int print_errors();

}  // namespace kintsugi::test
