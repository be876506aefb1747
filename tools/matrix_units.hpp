// Models of matrix units (schedule/accumulator.hpp) beside the units of this machine.
#pragma once

#include "support.hpp"

namespace kintsugi::tools {

// Appends a finding for each floating-point format and engine with a matrix unit: the models whose sums are
// the unit's bit for bit in random products, and the model whose bounds contracts use; "failed" if none has
// these bits.
void append_matrix_units(Json& findings);

}  // namespace kintsugi::tools
