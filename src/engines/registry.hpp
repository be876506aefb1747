// Registry of the engines of this build.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engines/engine.hpp"

namespace kintsugi::core {

// Returns the engines in the order of engines.def.
std::span<const Engine* const> all_engines();

// Returns nullptr if no engine has that name.
const Engine* find_engine(std::string_view name);

// Returns "cpu, reference, cuda", for messages about unknown names.
std::string engine_names();

}  // namespace kintsugi::core
