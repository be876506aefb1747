// Splits of operands on a device.
#pragma once

#include <cstdint>

#include "arith/residue/rounding_errors.hpp"
#include "arith/split_rule.hpp"
#include "engines/device_operands.hpp"
#include "engines/device_selection.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// Counters of a product in scratch memory. They must be 0 when the product begins.
struct DeviceCounters {
  std::uint32_t* first = nullptr;
  std::int64_t count = 0;
};

// Split of vectors first ... first + slices.vectors - 1, padding included. It writes the scales. If the
// ranges are not known, it also finds and writes them in the same pass.
struct DeviceSplit {
  DeviceSide side;
  std::int64_t first = 0;
  const SplitRule* rule = nullptr;
  Slices slices;
  std::int64_t vectors = 0;  // vectors of the operand that are split, if the rule has `strassen`
  bool ranges_known = false;
  const DeviceFit* fit = nullptr;  // if not null, replaces the rule's residual_exponent and first_rounding
  // True if this candidate is rarely selected. The kernel then gets few thread blocks: an early exit takes
  // less time, but a split that is computed takes more.
  bool unlikely = false;
  // True if the split also finds `elements` and `depth` of the ranges. It can only do so for FP32 vectors
  // with fp16 slices and unknown ranges.
  bool finds_depth = false;
  // False if nothing reads vectors of padding: tensor maps end with the operand, and the copies after its end
  // are zeros. Then long vectors of padding are not written.
  bool needs_padding = true;
  DeviceCounters cleared{};  // counters of a later product of one batch item, which the split sets to 0
};

// Rounding-error bounds (arith/residue/rounding_errors.hpp) of an operand's vectors first ... first + vectors
// - 1, scaled to 2^top_exponent as in SplitRule. `bounds` has an element for each vector of the operand.
struct DeviceRoundingBounds {
  DeviceSide side;
  int top_exponent = 0;
  RoundingBound* bounds = nullptr;
  std::int64_t first = 0;
  std::int64_t vectors = 0;
};

}  // namespace kintsugi::core
