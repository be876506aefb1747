// Histograms of signed errors of every order of magnitude.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace kintsugi::lab {

// Returns the edges of bins, ascending and symmetric about 0: +-10^(e/8), 10^-10 to 1. The bin in the middle
// holds smaller values.
inline const std::vector<double>& signed_logarithmic_edges() {
  static const std::vector<double> edges = [] {
    constexpr int bins_a_decade = 8;
    constexpr int decades = 10;
    std::vector<double> result;
    for (int e = 0; e >= -bins_a_decade * decades; --e)
      result.push_back(-std::pow(10.0, static_cast<double>(e) / bins_a_decade));
    for (std::size_t i = result.size(); i-- > 0;) result.push_back(-result[i]);
    return result;
  }();
  return edges;
}

// Returns one count more than edges: of values below the first edge, from each edge up to but not including
// the next, and from the last edge on. NaN is counted nowhere.
inline std::vector<std::int64_t> histogram(const std::vector<double>& values,
                                           const std::vector<double>& edges) {
  std::vector<std::int64_t> counts(edges.size() + 1);
  for (const double value : values) {
    if (std::isnan(value)) continue;
    counts[std::upper_bound(edges.begin(), edges.end(), value) - edges.begin()] += 1;
  }
  return counts;
}

}  // namespace kintsugi::lab
