// Products with rounding errors, whose Eq. 10 (MixPert) is computed beside the drop-in's report.
#pragma once

namespace kintsugi::test {

// Multiplies from two functions that call one wrapper, three calls each. Prints for each function its name,
// the relative error of all its results as one matrix, and that of the worst call. Returns 0.
int print_errors();

}  // namespace kintsugi::test
