// Counts and times of products by Ozaki scheme I.
#pragma once

#include <cstdint>

#include "schemes/program.hpp"

namespace kintsugi::core {

// Sums over the blocks of C that each have their own number of slices.
struct Ozaki1Counts {
  std::int64_t blocks = 0;
  std::int64_t slices_a = 0;
  std::int64_t slices_b = 0;
  std::int64_t products = 0;
  std::int64_t fast_blocks = 0;
  int min_slices =
      Ozaki1Parameters::max_slices;  // fewest in a block; vectors whose residual is 0 may have fewer
  int max_products = 0;
  double split_a_seconds = 0;  // includes Algorithm 3
  double split_b_seconds = 0;
  double product_seconds = 0;
  double summation_seconds = 0;
};

}  // namespace kintsugi::core
