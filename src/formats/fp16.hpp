// IEEE 754 binary16. Largest finite value 65504; larger magnitudes become infinity from 65520 on.
#pragma once

#include "formats/format.hpp"

namespace kintsugi::core {

inline constexpr Format fp16{
    .id = FormatId::fp16,
    .name = "fp16",
    .floating = true,
    .significand_bits = 11,
    .exponent_bits = 5,
    .min_exponent = -14,
    .max_exponent = 15,
    .storage_bytes = 2,
    .storage_shift = 0,
    .overflow = Overflow::infinity,
    .finite_top_exponent = false,
};

}  // namespace kintsugi::core
