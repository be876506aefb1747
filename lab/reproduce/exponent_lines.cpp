#include "lab/reproduce/exponent_lines.hpp"

namespace kintsugi::tools {

Series exponent_line(const std::string& label, const LineStyle& style, const Json& document,
                     const std::function<Json(const Json&)>& value) {
  Series series{.label = label, .colour = style.colour, .style = style.dashes, .points = {}};
  for (const Json& row : document.at("rows")) {
    const Json y = value(row);
    if (!y.is_null()) series.points.emplace_back(row.at("exponent").get<double>(), y.get<double>());
  }
  return series;
}

}  // namespace kintsugi::tools
