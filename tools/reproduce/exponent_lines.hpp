// Lines of a chart over the exponent, for documents with one row for each exponent.
#pragma once

#include <functional>
#include <string>

#include "reproduce/figures.hpp"

namespace kintsugi::tools {

// Returns a line of points (exponent, value), one for each row whose value is not null.
Series exponent_line(const std::string& label, int colour, int style, const Json& document,
                     const std::function<Json(const Json& row)>& value);

}  // namespace kintsugi::tools
