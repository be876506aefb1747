// Lines of a chart over the exponent, for documents with one row for each exponent.
#pragma once

#include <functional>
#include <string>

#include "reproduce/figures.hpp"

namespace kintsugi::tools {

// Numbers of the chart's colours, and of its dashes with their markers (Series::style).
struct LineStyle {
  int colour = 0;
  int dashes = 0;
};

// Returns a line of points (exponent, value), one for each row whose value is not null.
Series exponent_line(const std::string& label, const LineStyle& style, const Json& document,
                     const std::function<Json(const Json& row)>& value);

}  // namespace kintsugi::tools
