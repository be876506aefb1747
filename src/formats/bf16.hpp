// bfloat16: fp32 with 8 significand bits. Overflows to infinity.
#pragma once

#include "formats/format.hpp"

namespace kintsugi::core {

inline constexpr Format bf16{
    .id = FormatId::bf16,
    .name = "bf16",
    .floating = true,
    .significand_bits = 8,
    .exponent_bits = 8,
    .min_exponent = -126,
    .max_exponent = 127,
    .storage_bytes = 2,
    .storage_shift = 0,
    .overflow = Overflow::infinity,
    .finite_top_exponent = false,
};

}  // namespace kintsugi::core
