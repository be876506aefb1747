#include "report/charts/looks.hpp"

#include <algorithm>

namespace kintsugi::tools {

namespace {

std::string label_of(const std::string& name, const Json& row) {
  std::string text = name + " · " + cell(row, "engine");
  if (!cell(row, "accumulator").empty()) text += " · " + cell(row, "accumulator");
  return text;
}

std::string engine_of(const Json& row) { return cell(row, "engine") + cell(row, "accumulator"); }

// Returns the index of a name in the list. Appends the name if the list lacks it.
int find_or_append(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  const auto index = static_cast<int>(found - names.begin());
  if (found == names.end()) names.push_back(name);
  return index;
}

}  // namespace

Looks::Looks(const std::vector<Json>& rows) {
  for (const Json& row : rows) {
    if (cell(row, "scheme") != "native") find_or_append(schemes_, cell(row, "scheme"));
    find_or_append(engines_, engine_of(row));
  }
}

Series Looks::series_of(const Json& row, const std::string& scheme) { return series_of(row, scheme, scheme); }

Series Looks::series_of(const Json& row, const std::string& scheme, const std::string& name) {
  return {.label = label_of(name, row),
          .colour = scheme == "native" ? colour_of_text : find_or_append(schemes_, scheme),
          .style = find_or_append(engines_, engine_of(row)),
          .points = {}};
}

Series& series_in(Chart& chart, const Series& wanted) {
  const auto found = std::find_if(chart.series.begin(), chart.series.end(),
                                  [&](const Series& series) { return series.label == wanted.label; });
  if (found != chart.series.end()) return *found;
  chart.series.push_back(wanted);
  return chart.series.back();
}

void add_point(Series& series, double x, double y) {
  if (!series.points.empty() && series.points.back().first == x) {
    series.points.back().second = std::max(series.points.back().second, y);
  } else {
    series.points.emplace_back(x, y);
  }
}

}  // namespace kintsugi::tools
