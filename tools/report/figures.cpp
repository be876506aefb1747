#include "report/figures.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>

namespace kintsugi::tools {

namespace {

// What runs along x. Rows of one group are in one figure.
struct Dimension {
  const char* label;
  bool logarithmic;
  std::function<std::optional<double>(const Json&)> value;
  std::function<std::string(const Json&)> group;
};

std::string size_of(const Json& row, const char* name) { return cell(row.at("problem"), name); }

std::string family_of(const Json& row) {
  const std::string text = cell(row, "distribution");
  return text.substr(0, text.find(':'));
}

std::optional<double> parameter_of(const Json& row) {
  const std::string text = cell(row, "distribution");
  const auto colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  return parse_number("distribution", text.substr(colon + 1));
}

std::vector<Dimension> dimensions() {
  return {{"k", true, [](const Json& row) { return row.at("problem").at("k").get<double>(); },
           [](const Json& row) {
             return fmt::format("{}, m = {}, n = {}: error against k", cell(row, "distribution"),
                                size_of(row, "m"), size_of(row, "n"));
           }},
          {"m = n", true,
           [](const Json& row) -> std::optional<double> {
             if (size_of(row, "m") != size_of(row, "n")) return std::nullopt;
             return row.at("problem").at("m").get<double>();
           },
           [](const Json& row) {
             return fmt::format("{}, k = {}: error against m = n", cell(row, "distribution"),
                                size_of(row, "k"));
           }},
          {"parameter of the distribution", false, parameter_of, [](const Json& row) {
             return fmt::format("{}:P, {} x {} x {}: error against P", family_of(row), size_of(row, "m"),
                                size_of(row, "n"), size_of(row, "k"));
           }}};
}

struct Group {
  std::string title;
  std::vector<std::pair<double, const Json*>> rows;  // by x
};

std::vector<Group> groups_of(const std::vector<Json>& rows, const Dimension& dimension) {
  std::vector<Group> groups;
  for (const Json& row : rows) {
    const auto x = dimension.value(row);
    if (!x) continue;
    const std::string title = dimension.group(row);
    auto found =
        std::find_if(groups.begin(), groups.end(), [&](const Group& group) { return group.title == title; });
    if (found == groups.end()) found = groups.insert(found, {title, {}});
    found->rows.emplace_back(*x, &row);
  }
  for (Group& group : groups) {
    std::stable_sort(group.rows.begin(), group.rows.end(),
                     [](const auto& one, const auto& other) { return one.first < other.first; });
  }
  std::erase_if(groups,
                [](const Group& group) { return group.rows.front().first == group.rows.back().first; });
  return groups;
}

// Colours stand for schemes, dashes and markers for engine and accumulator, in every figure alike.
struct Looks {
  std::vector<std::string> schemes;
  std::vector<std::string> engines;

  explicit Looks(const std::vector<Json>& rows) {
    for (const Json& row : rows) {
      if (cell(row, "scheme") != "native") index(schemes, cell(row, "scheme"));
      index(engines, engine_of(row));
    }
  }
  static std::string engine_of(const Json& row) { return cell(row, "engine") + cell(row, "accumulator"); }
  static int index(std::vector<std::string>& names, const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    const auto place = static_cast<int>(found - names.begin());
    if (found == names.end()) names.push_back(name);
    return place;
  }
  Series series_of(const Json& row) {
    const bool native = cell(row, "scheme") == "native";
    return {method_text(row),
            native ? -1 : index(schemes, cell(row, "scheme")),
            index(engines, engine_of(row)),
            {}};
  }
};

// Of the seeds of a point the largest.
void add_point(Series& series, double x, double y) {
  if (!series.points.empty() && series.points.back().first == x) {
    series.points.back().second = std::max(series.points.back().second, y);
  } else {
    series.points.emplace_back(x, y);
  }
}

Chart make_chart(const Group& group, const Dimension& dimension, const Measure& measure, Looks& looks) {
  Chart chart{group.title, dimension.label, measure.label, dimension.logarithmic, {}, {}};
  for (const auto& [x, row] : group.rows) {
    const std::string label = method_text(*row);
    auto found = std::find_if(chart.series.begin(), chart.series.end(),
                              [&](const Series& series) { return series.label == label; });
    if (found == chart.series.end()) found = chart.series.insert(found, looks.series_of(*row));
    add_point(*found, x, read_number(row->at("errors").at(measure.member)));
  }
  // The contract is one of componentwise errors.
  if (std::string(measure.member) == "max_componentwise") {
    chart.limit = {"fp32 contract, (k + 8) 2^-24", -1, 2, {}};
    for (const auto& [x, row] : group.rows)
      add_point(chart.limit, x, read_number(row->at("errors").at("contract_bound")));
  }
  return chart;
}

std::string remark_of(const Chart& chart) {
  int zeros = 0;
  int infinite = 0;
  for (const Series& series : chart.series) {
    for (const auto& point : series.points) {
      zeros += point.second == 0 ? 1 : 0;
      infinite += std::isfinite(point.second) ? 0 : 1;
    }
  }
  if (zeros + infinite == 0) return "";
  return fmt::format("Not drawn: {} points with the error 0, {} with an infinite one; the table has them.",
                     zeros, infinite);
}

}  // namespace

std::string method_text(const Json& row) {
  std::string text = cell(row, "scheme") + " · " + cell(row, "engine");
  if (!cell(row, "accumulator").empty()) text += " · " + cell(row, "accumulator");
  return text;
}

std::vector<Figure> make_figures(const std::vector<Json>& rows) {
  Looks looks(rows);
  std::vector<Figure> figures;
  for (const Dimension& dimension : dimensions()) {
    for (const Group& group : groups_of(rows, dimension)) {
      Figure figure{group.title, {}, {}};
      for (const Measure& measure : measures) {
        figure.charts.push_back(make_chart(group, dimension, measure, looks));
        figure.remarks.push_back(remark_of(figure.charts.back()));
      }
      figures.push_back(std::move(figure));
    }
  }
  return figures;
}

}  // namespace kintsugi::tools
