// Memory of a checked plan on a device in addition to that of its products
// (execute/device/candidates/checked.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "arith/rounding_bound.hpp"
#include "base/memory.hpp"
#include "engines/device_checks.hpp"
#include "planner/plan.hpp"
#include "recombine/accumulators.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// Rows and columns of the sums of a tile, of the largest one if tiles differ.
struct DeviceTileSize {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

// True if the contract allows errors. A product of magnitudes, which bounds |A||B| from below, can prove
// elements then.
bool allows_error(const Plan& plan);

struct DeviceCheckedMemory {
  RoundingBound* rounding_bounds_a = nullptr;
  RoundingBound* rounding_bounds_b = nullptr;
  DeviceOpenElements open_elements;  // open elements of one block of C
  // Ranges, slices and sums of magnitudes, if allows_error(). Their scales are not those of the residues, so
  // they have ranges of their own.
  VectorRange* ranges_a = nullptr;
  VectorRange* ranges_b = nullptr;
  Slices slices_a;
  Slices slices_b;
  Accumulators sums;
};
DeviceCheckedMemory lay_out_device_checked(const Plan& plan, const Blocking& blocking,
                                           const DeviceTileSize& tile, Workspace& workspace);

// Returns the scratch bytes of the products of magnitudes, which run before the other products of the tile
// and use the same scratch.
std::size_t magnitude_scratch_bytes(const Plan& plan, const DeviceTileSize& tile);

}  // namespace kintsugi::core
