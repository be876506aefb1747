// All engines of this build.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engines/engine.hpp"

namespace kintsugi::core {

// In the order of engines.def.
std::span<const Engine* const> all_engines();

// nullptr when there is no engine of that name.
const Engine* find_engine(std::string_view name);

// "cpu, reference": for messages about unknown names.
std::string engine_names();

}  // namespace kintsugi::core
