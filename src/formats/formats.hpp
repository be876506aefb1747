// The list of formats: a new format is a header and a line here.
#pragma once

#include <array>
#include <string_view>

#include "formats/bf16.hpp"
#include "formats/fp16.hpp"
#include "formats/fp32.hpp"
#include "formats/fp64.hpp"
#include "formats/fp8_e4m3.hpp"
#include "formats/fp8_e5m2.hpp"
#include "formats/int52.hpp"
#include "formats/int8.hpp"
#include "formats/tf32.hpp"

namespace kintsugi::core {

inline constexpr std::array formats{&fp16, &bf16, &tf32, &fp8_e4m3, &fp8_e5m2, &int8, &fp32, &fp64, &int52};

// Returns the format of that name, or nullptr.
constexpr const Format* find_format(std::string_view name) {
  for (const Format* format : formats) {
    if (name == format->name) return format;
  }
  return nullptr;
}

}  // namespace kintsugi::core
