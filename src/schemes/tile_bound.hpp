// Error bound of programs with exponents per tile (docs/schemes/mixpert.md).
#pragma once

#include <cstdint>

#include "schemes/bound.hpp"

namespace kintsugi::core {

constexpr bool has_tiles(const Program& program) { return program.schedule.tiles.depth > 0; }

// Returns the largest loss of one element, relative to the power of two that undoes the scale of its panel of
// tiles.
double tile_rounding(const SplitRule& rule);

// Returns the error of splits and left-out products of segments in a sum over k, without the error of
// additions in FP32.
ErrorBound tile_split_bound(const Program& program, std::int64_t k);

// Returns the error of all steps before the last rounding.
ErrorBound tile_bound(const Program& program, std::int64_t k);

}  // namespace kintsugi::core
