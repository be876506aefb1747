// Kernels for sums of products in two doubles (recombine/exact_sums.cpp), which an engine of the host offers.
// Families are compiled with flags of their own, so this header holds plain data only
// (engines/cpu/kernels.hpp).
#pragma once

#include <cstdint>

namespace kintsugi::core {

// Rows that a kernel sums at once, and columns whose factors are adjacent.
inline constexpr std::int64_t sum_panel_rows = 8;
inline constexpr std::int64_t sum_panel_columns = 4;

// Sums as CompensatedSum of arith/exact has them, in three arrays: the rounded sum, the sum of the rounding
// errors of products and sums, and the sum of the magnitudes of these errors. Element (i, j) is at
// [i + j * stride].
struct CompensatedSums {
  double* sum;
  double* errors;
  double* magnitudes;
  std::int64_t stride;
};

struct SumKernels {
  const char* name;

  // Adds to the sums of sum_panel_rows rows and `columns` columns, at most sum_panel_columns. Element (i, p)
  // of `a` is at [i + sum_panel_rows p], element (p, j) of `b` at [j + sum_panel_columns p].
  void (*add_panels)(const double* a, const double* b, std::int64_t length, std::int64_t columns,
                     const CompensatedSums& sums);

  // Adds the products a[p] b[p] to sum_panel_rows sums, each of which gets every eighth product.
  void (*add_vectors)(const double* a, const double* b, std::int64_t length, const CompensatedSums& sums);
};

}  // namespace kintsugi::core
