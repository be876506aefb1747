// Norms of vectors on the host, and their comparison with a device's.
#pragma once

#include "arith/residue/norm_proof.hpp"
#include "gpu/split/split_cases.hpp"
#include "split/ranges.hpp"

namespace kintsugi::test {

// A rule whose ranges tests of norms find.
inline const SplitRule& rule_of_norms() {
  static const SplitRule rule = find_scheme("ozaki2:moduli=16")->program.split_a;
  return rule;
}

// Norms of all vectors, whose ranges are known.
template <class View>
std::vector<VectorNorm> norms_on_host(const View& view, const std::vector<VectorRange>& ranges) {
  std::vector<VectorNorm> norms;
  for (std::int64_t v = 0; v < view.rows; ++v) {
    const TwoFactors scaling = norm_scaling(ranges[static_cast<std::size_t>(v)]);
    NormSums sums;
    for (std::int64_t p = 0; p < view.columns; ++p) sums.add(view(v, p), scaling);
    norms.push_back(sums.norm(view.columns));
  }
  return norms;
}

// Compares the norms of vectors with the host's.
inline void expect_same_norms(const VectorNorm* got, const std::vector<VectorNorm>& wanted,
                              const std::string& text) {
  for (std::size_t v = 0; v < wanted.size(); ++v) {
    ASSERT_EQ(got[v].elements, wanted[v].elements) << text << ", vector " << v;
    ASSERT_EQ(got[v].bits, wanted[v].bits) << text << ", vector " << v;
    ASSERT_EQ(got[v].mean, wanted[v].mean) << text << ", vector " << v;
    ASSERT_EQ(got[v].mean_exponent, wanted[v].mean_exponent) << text << ", vector " << v;
    ASSERT_EQ(got[v].depth, wanted[v].depth) << text << ", vector " << v;
  }
}

}  // namespace kintsugi::test
