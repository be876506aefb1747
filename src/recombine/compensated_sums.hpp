// Rounding of many sums in two doubles at once.
#pragma once

#include <cstdint>

#include "base/rounding.hpp"
#include "recombine/sum_kernels.hpp"

namespace kintsugi::core {

// C = alpha S + beta C of a call whose sums S have `products` products.
struct SumScalars {
  double alpha;
  double beta;
  std::int64_t products;
  RoundingMode rounding = RoundingMode::nearest;

  // False if the rounding of sums must leave all elements open.
  bool may_be_certain() const;
};

// Rounds `count` sums: values[i] = alpha S_i + beta c[i], rounded once, where S_i is the exact sum. `c` is
// null if beta = 0. certain[i] is not 0 if the value is proved to be that of the exact sum; it never is for a
// double whose value is not a normal number or zero. The products of the sums must be exact: none may
// overflow or have bits below 2^-1074. Zero gives +0, and is not proved when rounding down.
void round_sums(const CompensatedSums& sums, std::int64_t count, const SumScalars& scalars, const double* c,
                double* values, std::uint64_t* certain);
void round_sums(const CompensatedSums& sums, std::int64_t count, const SumScalars& scalars, const float* c,
                float* values, std::uint64_t* certain);

}  // namespace kintsugi::core
