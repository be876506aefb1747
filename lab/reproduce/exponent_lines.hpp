// Lines of a chart over the exponent, for documents with one row for each exponent.
#pragma once

#include <functional>
#include <string>

#include "lab/reproduce/figures.hpp"

namespace kintsugi::tools {

// Indices of a line's colour (Series::colour) and of its dashes and marker (Series::style).
struct LineStyle {
  int colour = 0;
  int dashes = 0;
};

// Returns a line of points (exponent, value), one for each row whose value is not null.
Series exponent_line(const std::string& label, const LineStyle& style, const Json& document,
                     const std::function<Json(const Json& row)>& value);

}  // namespace kintsugi::tools
