// What may run along the x axis of a figure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support.hpp"

namespace kintsugi::tools {

// Rows of one group are in one figure, rows of one scheme text in one line.
struct Dimension {
  std::string label;
  std::string against;  // the same in a title
  bool logarithmic;
  std::function<std::optional<double>(const Json&)> value;
  std::function<std::string(const Json&)> group;
  std::function<std::string(const Json&)> scheme;  // without what runs along x
  bool native_is_level = false;                    // native has no such value: a level line
};

// `rows` have the parameters of schemes that there are.
std::vector<Dimension> dimensions_of(const std::vector<Json>& rows);

// fp32 or fp64.
std::string type_of(const Json& row);

// "uniform, 64 x 64 x 256", with the type where it is not fp32.
std::string cell_text(const Json& row);

}  // namespace kintsugi::tools
