// Signed 52-bit integers in 64 bits, -2^51...2^51 - 1: the words that VPMADD52 multiplies. Larger magnitudes
// saturate, NaN becomes 0.
#pragma once

#include "formats/format.hpp"

namespace kintsugi::core {

inline constexpr Format int52{
    .id = FormatId::int52,
    .name = "int52",
    .floating = false,
    .significand_bits = 51,
    .exponent_bits = 0,
    .min_exponent = 0,
    .max_exponent = 50,
    .storage_bytes = 8,
    .storage_shift = 0,
    .overflow = Overflow::saturate,
    .finite_top_exponent = false,
};

}  // namespace kintsugi::core
