// Quantities that a figure may have on its x axis.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support.hpp"

namespace kintsugi::tools {

// One such quantity. Rows of one group are in one figure, rows of one scheme text on one line.
struct Dimension {
  std::string label;
  std::string against;  // label within a title
  bool logarithmic;
  std::function<std::optional<double>(const Json&)> value;
  std::function<std::string(const Json&)> group;
  std::function<std::string(const Json&)> scheme;  // without the part on the x axis
  bool native_is_level = false;                    // native has no such value: it is a level line
};

// Returns the dimensions for `rows`, which show the parameters of schemes that occur.
std::vector<Dimension> dimensions_of(const std::vector<Json>& rows);

// Returns fp32 or fp64.
std::string type_of(const Json& row);

// Returns "uniform, 64 x 64 x 256", with the type if it is not fp32.
std::string cell_text(const Json& row);

}  // namespace kintsugi::tools
