// fp8 e4m3 of the OCP 8-bit floating point specification: largest finite value 448, no infinity; overflow is
// NaN.
#pragma once

#include "formats/format.hpp"

namespace kintsugi::core {

inline constexpr Format fp8_e4m3{
    .id = FormatId::fp8_e4m3,
    .name = "fp8_e4m3",
    .floating = true,
    .significand_bits = 4,
    .exponent_bits = 4,
    .min_exponent = -6,
    .max_exponent = 8,
    .storage_bytes = 1,
    .storage_shift = 0,
    .overflow = Overflow::nan,
    .finite_top_exponent = true,
};

}  // namespace kintsugi::core
