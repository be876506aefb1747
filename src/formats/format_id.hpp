// Identities of the number formats (formats/format.hpp).
#pragma once

#include <cstdint>

namespace kintsugi::core {

enum class FormatId : std::uint8_t { fp16, bf16, tf32, fp8_e4m3, fp8_e5m2, int8, fp32, fp64, int52 };

}  // namespace kintsugi::core
