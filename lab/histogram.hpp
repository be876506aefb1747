// How signed errors of every order of magnitude are distributed.
#pragma once

#include <cstdint>
#include <vector>

namespace kintsugi::lab {

// Edges of bins, ascending and symmetric about 0: +-10^(e/8), 10^-10 to 1. The bin in the middle holds what
// is smaller than them all.
const std::vector<double>& signed_logarithmic_edges();

// One count more than edges: values below the first edge, from each edge up to but not including the next,
// and from the last edge on. NaN is in none.
std::vector<std::int64_t> histogram(const std::vector<double>& values, const std::vector<double>& edges);

}  // namespace kintsugi::lab
