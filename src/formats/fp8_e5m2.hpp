// fp8 e5m2 of the OCP 8-bit floating point specification: largest finite value 57344; overflow is infinity.
#pragma once

#include "formats/format.hpp"

namespace kintsugi::core {

inline constexpr Format fp8_e5m2{
    .id = FormatId::fp8_e5m2,
    .name = "fp8_e5m2",
    .floating = true,
    .significand_bits = 3,
    .exponent_bits = 5,
    .min_exponent = -14,
    .max_exponent = 15,
    .storage_bytes = 1,
    .storage_shift = 0,
    .overflow = Overflow::infinity,
    .finite_top_exponent = false,
};

}  // namespace kintsugi::core
