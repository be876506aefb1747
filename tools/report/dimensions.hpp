// Quantities that a figure may have on its x axis.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support.hpp"

namespace kintsugi::tools {

// One such quantity.
struct Dimension {
  std::string label;        // of the axis
  std::string title_label;  // the same in a title, "... against k"
  bool logarithmic;
  std::function<std::optional<double>(const Json& row)> value;  // of a row; nothing: the row is not drawn
  std::function<std::string(const Json& row)> group;            // rows of one group are in one figure
  // The row's scheme without the parameter on the x axis; rows with the same one are on one line.
  std::function<std::string(const Json& row)> scheme;
  bool native_is_level = false;  // true: native products have no such value and are drawn as horizontal lines
};

// Returns the dimensions by which `rows` can be drawn: sizes, the distribution's parameter, and the
// parameters of schemes that occur.
std::vector<Dimension> dimensions_of(const std::vector<Json>& rows);

// Returns fp32 or fp64.
std::string type_of(const Json& row);

// Returns "uniform, 64 x 64 x 256", with the type if it is not fp32.
std::string problem_text(const Json& row);

}  // namespace kintsugi::tools
