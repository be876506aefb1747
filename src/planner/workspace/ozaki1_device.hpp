// Slices, tiles and memory of a product by Ozaki scheme I on a device (execute/device/candidates/ozaki1.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/memory.hpp"
#include "engines/device_ozaki1.hpp"
#include "planner/plan.hpp"
#include "recombine/accumulators.hpp"
#include "split/slices.hpp"
#include "split/successive.hpp"

namespace kintsugi::core {

// Rows and columns of C that one step multiplies: about twice as many tiles of 128 x 128 as an H200 has SMs.
inline constexpr std::int64_t ozaki1_tile_edge = 2048;
// Number of products of slices that one step adds.
inline constexpr int ozaki1_products_at_once = 4;

// True if sums are exact and C is correctly rounded (mode=cr).
bool is_exact_ozaki1(const Plan& plan);

// Returns the number of slices of each operand that a device makes and multiplies, whatever the data are. The
// device counts the slices that the data need, but the host does not wait for these counts.
int ozaki1_device_slices(const Plan& plan);

// Returns the sizes of the blocks of C with their own numbers of slices. The pointer to the counts is null.
DeviceBlockSliceCounts ozaki1_slice_counts(const Plan& plan);

// Returns the layout of products of slices for `rows` rows and `columns` columns of C. The pointer to the
// data is null.
Accumulators ozaki1_products(const Plan& plan, std::int64_t rows, std::int64_t columns);

// All memory of a batch item.
struct DeviceOzaki1Memory {
  Slices a;
  Slices b;
  DeviceSliceExponents exponents_a;
  DeviceSliceExponents exponents_b;
  std::int32_t* unreachable = nullptr;  // set by the device if the operands need more slices than are made
  double* weights = nullptr;            // if slices are counted on the device
  SliceCounts* slice_counts = nullptr;  // if slices are counted on the device
  std::byte* products = nullptr;
  std::byte* sums = nullptr;
  std::byte* scratch = nullptr;
};
DeviceOzaki1Memory lay_out_device_ozaki1(const Plan& plan, const Blocking& blocking, Workspace& workspace);

}  // namespace kintsugi::core
