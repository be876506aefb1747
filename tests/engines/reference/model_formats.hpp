// Short names of formats as template arguments of models, and bits of floats.
#pragma once

#include <bit>
#include <cstdint>

#include "engines/reference/models.hpp"

namespace kintsugi::core {

inline constexpr FormatId half = FormatId::fp16;
inline constexpr FormatId brain = FormatId::bf16;
inline constexpr FormatId tensor = FormatId::tf32;

inline float float_of(std::uint64_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }
inline std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

}  // namespace kintsugi::core
