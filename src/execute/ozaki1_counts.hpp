// Counts and times of products by Ozaki scheme I.
#pragma once

#include <cstdint>

#include "schemes/program.hpp"

namespace kintsugi::core {

// Number of blocks of C, each of which has its own number of slices, and sums over all blocks.
struct Ozaki1Counts {
  std::int64_t blocks = 0;
  std::int64_t slices_a = 0;
  std::int64_t slices_b = 0;
  std::int64_t products = 0;     // products of a slice of A and a slice of B
  std::int64_t fast_blocks = 0;  // blocks computed in fast mode, without the smallest products
  // Fewest slices in a block; a vector whose residual became 0 may have fewer.
  int min_slices = Ozaki1Parameters::max_slices;
  int max_products = 0;        // most products in a block
  double split_a_seconds = 0;  // includes Algorithm 3
  double split_b_seconds = 0;
  double product_seconds = 0;
  double summation_seconds = 0;
};

}  // namespace kintsugi::core
