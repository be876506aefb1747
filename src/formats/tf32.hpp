// TensorFloat-32: fp32's exponents with 11 significand bits, stored as fp32 whose last 13 bits are zero.
#pragma once

#include "formats/format.hpp"

namespace kintsugi::core {

inline constexpr Format tf32{
    .id = FormatId::tf32,
    .name = "tf32",
    .floating = true,
    .significand_bits = 11,
    .exponent_bits = 8,
    .min_exponent = -126,
    .max_exponent = 127,
    .storage_bytes = 4,
    .storage_shift = 13,
    .overflow = Overflow::infinity,
    .finite_top_exponent = false,
};

}  // namespace kintsugi::core
