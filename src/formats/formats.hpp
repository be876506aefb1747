// The formats and their list: a new format is a description here, and its name in the list.
#pragma once

#include <array>
#include <string_view>

#include "formats/format.hpp"

namespace kintsugi::core {

// IEEE 754 binary16. Largest finite value 65504; larger magnitudes become infinity from 65520 on.
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

// bfloat16: fp32 with 8 significand bits. Overflows to infinity.
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

// TensorFloat-32: fp32's exponents with 11 significand bits, stored as fp32 whose last 13 bits are zero.
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

// fp8 e4m3 of the OCP 8-bit floating point specification: largest finite value 448, no infinity; overflow is
// NaN.
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

// fp8 e5m2 of the OCP 8-bit floating point specification: largest finite value 57344; overflow is infinity.
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

// Signed 8-bit integers, -128...127; larger magnitudes saturate, NaN becomes 0.
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

// IEEE 754 binary32: the format of native FP32 products.
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

// IEEE 754 binary64: the format of native FP64 products.
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

// Signed 52-bit integers in 64 bits, -2^51...2^51 - 1: the words that VPMADD52 multiplies. Larger magnitudes
// saturate, NaN becomes 0.
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

inline constexpr std::array formats{&fp16, &bf16, &tf32, &fp8_e4m3, &fp8_e5m2, &int8, &fp32, &fp64, &int52};

// Returns the format of that name, or nullptr.
constexpr const Format* find_format(std::string_view name) {
  for (const Format* format : formats) {
    if (name == format->name) return format;
  }
  return nullptr;
}

}  // namespace kintsugi::core
