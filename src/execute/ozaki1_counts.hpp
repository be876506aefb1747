// Counts and times of products by Ozaki scheme I.
#pragma once

#include <cstdint>

#include "schemes/program.hpp"

namespace kintsugi::core {

// Counts and times, summed over all blocks of C. Each block has its own number of slices.
struct Ozaki1Counts {
  std::int64_t blocks = 0;
  std::int64_t slices_a = 0;
  std::int64_t slices_b = 0;
  std::int64_t products = 0;     // products of a slice of A and a slice of B
  std::int64_t fast_blocks = 0;  // blocks computed in fast mode, without the smallest products
  // Fewest slices of any block. (A vector whose residual became 0 may have fewer slices than its block.)
  int min_slices = Ozaki1Parameters::max_slices;
  int max_products = 0;        // most products of any block
  double split_a_seconds = 0;  // includes Algorithm 3
  double split_b_seconds = 0;
  double product_seconds = 0;
  double summation_seconds = 0;
};

}  // namespace kintsugi::core
