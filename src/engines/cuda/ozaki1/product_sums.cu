// Addition of products of slices to the sums of a tile: step 3 of dgemm-tc. The host's counterpart is
// src/recombine/ozaki1.cpp.
#include "arith/weighted_sum.hpp"
#include "engines/cuda/ozaki1/sums.cuh"

namespace kintsugi::core::cuda {

namespace {

// Calls visit(integer, slice of A) for each product of `groups` that element (i, v) of the tile needs.
// Products of slices that are zero may be missing in memory.
template <class Visit>
__device__ void for_each_product(const DeviceProductSums& sums, const ProductGroups& groups, std::int64_t i,
                                 std::int64_t v, const Visit& visit) {
  if (sums.vector_exponents.lengths[v] <= groups.b) return;
  const int needed = min(depth_at(sums, i, v).products(groups.b), sums.row_exponents.lengths[i]);
  const int count = min(needed - groups.first_a, groups.count);
  const std::int64_t* integer = groups.data + i + v * sums.stride;
  for (int p = 0; p < count; ++p) {
    visit(*integer, groups.first_a + p);
    integer += groups.group_stride;
  }
}

// Adds products to the FP64 sum of row i and vector v of the tile, or begins it.
__device__ void add_running_products(const DeviceProductSums& sums, const ProductGroups& groups, bool begins,
                                     std::int64_t i, std::int64_t v) {
  double& target = running_sum(sums, i, v);
  double sum = begins ? 0.0 : target;
  // Exponent of the product of the two first slices, minus the exponent of slice groups.b of B.
  const std::int32_t exponent = exponent_at(sums.vector_exponents, 0, v) -
                                exponent_at(sums.vector_exponents, groups.b, v) +
                                exponent_at(sums.row_exponents, 0, i);
  for_each_product(sums, groups, i, v, [&](std::int64_t integer, int a) {
    sum += running_term(integer, exponent - exponent_at(sums.row_exponents, a, i));
  });
  target = sum;
}

// The same for the exact sum.
__device__ void add_exact_products(const DeviceProductSums& sums, const ProductGroups& groups, bool begins,
                                   std::int64_t i, std::int64_t v) {
  ExactSumOfProducts sum;
  if (!begins) sum = exact_sum(sums, i, v);
  const int last = sums.slices - 1;
  // Exponent of slice groups.b of B, minus the exponent of the product of the two last slices.
  const std::int32_t exponent = exponent_at(sums.vector_exponents, groups.b, v) -
                                exponent_at(sums.vector_exponents, last, v) -
                                exponent_at(sums.row_exponents, last, i);
  for_each_product(sums, groups, i, v, [&](std::int64_t integer, int a) {
    add_product(sum, integer, exponent + exponent_at(sums.row_exponents, a, i));
  });
  set_exact_sum(sums, i, v, sum);
}

}  // namespace

// Adds to each element of the tile the products of `groups` that it needs. The first products begin the sums.
extern "C" __global__ void __launch_bounds__(elements_threads)
    add_products(const __grid_constant__ DeviceProductSums sums,
                 const __grid_constant__ ProductGroups groups) {
  if (!holds(sums.tile.condition)) return;
  const std::int64_t i = std::int64_t{blockIdx.x} * elements_threads + threadIdx.x;
  const std::int64_t v = blockIdx.y;
  if (i >= sums.tile.rows) return;
  const bool begins = groups.b == 0 && groups.first_a == 0;
  if (!begins && depth_at(sums, i, v).products(groups.b) <= groups.first_a) return;
  if (sums.exact) {
    add_exact_products(sums, groups, begins, i, v);
  } else {
    add_running_products(sums, groups, begins, i, v);
  }
}

}  // namespace kintsugi::core::cuda
