// IEEE 754 binary64: the format of native FP64 products.
#pragma once

#include "formats/format.hpp"

namespace kintsugi::core {

inline constexpr Format fp64{
    .id = FormatId::fp64,
    .name = "fp64",
    .floating = true,
    .significand_bits = 53,
    .exponent_bits = 11,
    .min_exponent = -1022,
    .max_exponent = 1023,
    .storage_bytes = 8,
    .storage_shift = 0,
    .overflow = Overflow::infinity,
    .finite_top_exponent = false,
};

}  // namespace kintsugi::core
