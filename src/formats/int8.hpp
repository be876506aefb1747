// Signed 8-bit integers, -128...127; larger magnitudes saturate, NaN becomes 0.
#pragma once

#include "formats/format.hpp"

namespace kintsugi::core {

inline constexpr Format int8{
    .id = FormatId::int8,
    .name = "int8",
    .floating = false,
    .significand_bits = 7,
    .exponent_bits = 0,
    .min_exponent = 0,
    .max_exponent = 6,
    .storage_bytes = 1,
    .storage_shift = 0,
    .overflow = Overflow::saturate,
    .finite_top_exponent = false,
};

}  // namespace kintsugi::core
