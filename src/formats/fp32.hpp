// IEEE 754 binary32: the format of native FP32 products.
#pragma once

#include "formats/format.hpp"

namespace kintsugi::core {

inline constexpr Format fp32{
    .id = FormatId::fp32,
    .name = "fp32",
    .floating = true,
    .significand_bits = 24,
    .exponent_bits = 8,
    .min_exponent = -126,
    .max_exponent = 127,
    .storage_bytes = 4,
    .storage_shift = 0,
    .overflow = Overflow::infinity,
    .finite_top_exponent = false,
};

}  // namespace kintsugi::core
