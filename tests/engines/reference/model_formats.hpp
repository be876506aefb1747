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

template <FormatId Id>
using V100 = ModelOf<Id, Accumulator::v100>;
template <FormatId Id>
using A100 = ModelOf<Id, Accumulator::a100>;
template <FormatId Id>
using H200 = ModelOf<Id, Accumulator::h200>;
template <FormatId Id>
using H200Mma = ModelOf<Id, Accumulator::h200_mma>;

}  // namespace kintsugi::core
