// Names of the costs in profiles, and how each cost changes from one device to another.
#pragma once

#include <string>
#include <vector>

#include "engines/cuda/arch/costs.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Change of a cost on a device of another size. Times shrink in proportion to the clock of the SMs
// (clock_time) or to the memory bandwidth (memory_time). Rates grow in proportion to the clock times the
// number of SMs (compute_rate) or to the memory bandwidth (memory_rate).
enum class CostScaling { none, clock_time, memory_time, compute_rate, memory_rate };

// Name of a type's costs, such as "c64".
const char* name_of(ElementType type);

struct CostField {
  std::string name;  // such as "multi_term.joined_tiles.0.block"
  double* value;
  CostScaling scaling;
};

// Returns all costs, in the order of costs.hpp. The fields point into `costs`.
std::vector<CostField> cost_fields(Costs& costs);

}  // namespace kintsugi::core::cuda
