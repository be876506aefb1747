// Bound of programs with exponents per tile (docs/schemes/mixpert.md).
#pragma once

#include <cstdint>

#include "schemes/bound.hpp"

namespace kintsugi::core {

constexpr bool has_tiles(const Program& program) { return program.schedule.tiles.depth > 0; }

// Largest loss of one element, relative to the power of two that undoes its panel's scale.
double tile_rounding(const SplitRule& rule);

// Error that the splits and the left-out products of segments cause in a sum over k, without that of
// additions in FP32.
ErrorBound tile_split_bound(const Program& program, std::int64_t k);

// Error of all steps before the last rounding.
ErrorBound tile_bound(const Program& program, std::int64_t k);

}  // namespace kintsugi::core
