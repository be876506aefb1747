// Lines of the figures that are not sweeps: each of their rows has an exponent.
#pragma once

#include <functional>
#include <string>

#include "reproduce/figures.hpp"

namespace kintsugi::tools {

// Returns a line of points (exponent, value); rows whose value is null have none.
Series exponent_line(const std::string& label, int colour, int style, const Json& document,
                     const std::function<Json(const Json& row)>& value);

}  // namespace kintsugi::tools
