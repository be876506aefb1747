// Memory that a checked plan on a device needs in addition to the memory of its products
// (execute/device/candidates/checked.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "arith/residue/rounding_errors.hpp"
#include "base/memory.hpp"
#include "engines/device_checks.hpp"
#include "planner/plan.hpp"
#include "recombine/accumulators.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// Rows and columns of the sums of the largest tile.
struct DeviceTileSize {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

// True if the contract allows errors. Then a product of magnitudes, a lower bound of |A||B|, can prove
// elements.
bool allows_error(const Plan& plan);

struct DeviceCheckedMemory {
  RoundingErrors* rounding_errors_a = nullptr;
  RoundingErrors* rounding_errors_b = nullptr;
  DeviceOpenElements open_elements;  // open elements of one block of C
  // Ranges, slices and sums of magnitudes, if allows_error(). Magnitudes have ranges of their own, since
  // their scales are different from the scales of the residues.
  VectorRange* ranges_a = nullptr;
  VectorRange* ranges_b = nullptr;
  Slices slices_a;
  Slices slices_b;
  Accumulators sums;
};
DeviceCheckedMemory lay_out_device_checked(const Plan& plan, const Blocking& blocking,
                                           const DeviceTileSize& tile, Workspace& workspace);

// Returns the scratch bytes of the products of magnitudes. The other products of the tile run later and use
// the same scratch.
std::size_t magnitude_scratch_bytes(const Plan& plan, const DeviceTileSize& tile);

}  // namespace kintsugi::core
