// Names of the costs, as profiles have them, and how each changes from one device to another.
#pragma once

#include <string>
#include <vector>

#include "engines/cuda/arch/costs.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Change of a cost on a device of another size: times shrink with the clock of the SMs or with the memory
// bandwidth, rates grow with what all SMs compute or with the memory bandwidth.
enum class CostScaling { none, clock_time, memory_time, compute_rate, memory_rate };

// Name of a type's costs, such as "c64".
const char* name_of(ElementType type);

struct CostField {
  std::string name;  // such as "multi_term.joined_tiles.0.block"
  double* value;
  CostScaling scaling;
};

// Returns all costs, in the order of costs.hpp.
std::vector<CostField> cost_fields(Costs& costs);

}  // namespace kintsugi::core::cuda
