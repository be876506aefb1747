// Histograms of signed errors of every order of magnitude.
#pragma once

#include <cstdint>
#include <vector>

namespace kintsugi::lab {

// Returns the edges of bins, ascending and symmetric about 0: +-10^(e/8), 10^-10 to 1. The bin in the middle
// holds smaller values.
const std::vector<double>& signed_logarithmic_edges();

// Returns one count more than edges: of values below the first edge, from each edge up to but not including
// the next, and from the last edge on. NaN is counted nowhere.
std::vector<std::int64_t> histogram(const std::vector<double>& values, const std::vector<double>& edges);

}  // namespace kintsugi::lab
