// Quantities that a figure may have on its x axis.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support.hpp"

namespace kintsugi::tools {

struct Dimension {
  std::string label;        // label of the axis
  std::string title_label;  // label in a title, "... against k"
  bool logarithmic;
  std::function<std::optional<double>(const Json& row)> value;  // x of a row; nothing: the row is not drawn
  std::function<std::string(const Json& row)> group;            // rows of one group are in one figure
  // Scheme of a row without the parameter that is on the x axis. Rows with equal results are on one line.
  std::function<std::string(const Json& row)> scheme;
  bool draws_native_as_line = false;  // true: native rows have no value of x; native is a horizontal line
};

// Returns the dimensions by which `rows` can be drawn: sizes, the distribution's parameter, and the
// parameters of schemes that occur.
std::vector<Dimension> dimensions_of(const std::vector<Json>& rows);

// Returns fp32 or fp64.
std::string row_type(const Json& row);

// Returns "uniform, 64 x 64 x 256", with the type if it is not fp32.
std::string problem_text(const Json& row);

}  // namespace kintsugi::tools
