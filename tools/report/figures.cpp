#include "report/figures.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>

#include "report/charts/looks.hpp"
#include "report/dimensions.hpp"
#include "report/roofline.hpp"

namespace kintsugi::tools {

namespace {

using Point = std::pair<double, const Json*>;

struct Group {
  std::string title;
  std::vector<Point> rows;               // ordered by x
  std::vector<const Json*> level_lines;  // native rows without an x, drawn as horizontal lines
};

// Returns the number of different x in the group.
std::size_t count_values(const Group& group) {
  std::set<double> values;
  for (const Point& point : group.rows) values.insert(point.first);
  return values.size();
}

// Returns the group with the title; adds it if there is none.
Group& group_titled(std::vector<Group>& groups, const std::string& title) {
  const auto found =
      std::find_if(groups.begin(), groups.end(), [&](const Group& group) { return group.title == title; });
  if (found != groups.end()) return *found;
  groups.push_back({title, {}, {}});
  return groups.back();
}

std::vector<Group> groups_of(const std::vector<Json>& rows, const Dimension& dimension,
                             std::size_t min_values) {
  std::vector<Group> groups;
  for (const Json& row : rows) {
    const auto x = dimension.value(row);
    const bool is_level_line = dimension.draws_native_as_line && cell(row, "scheme") == "native";
    const char* quantity = row.contains("rate") ? "rate" : "error";
    const auto title = [&] {
      return fmt::format("{}: {} against {}", dimension.group(row), quantity, dimension.title_label);
    };
    if (x) group_titled(groups, title()).rows.emplace_back(*x, &row);
    if (!x && is_level_line) group_titled(groups, title()).level_lines.push_back(&row);
  }
  for (Group& group : groups) {
    std::stable_sort(group.rows.begin(), group.rows.end(),
                     [](const Point& x, const Point& y) { return x.first < y.first; });
  }
  std::erase_if(groups, [min_values](const Group& group) { return count_values(group) < min_values; });
  return groups;
}

// Returns the value of a measure in a row. A row may lack the value: in older files, on machines that cannot
// measure it, for engines without a native product, and for the difference of native from itself.
std::optional<double> value_of(const Json& row, const Measure& measure) {
  const bool is_difference = measure.kind == MeasureKind::difference_to_native;
  if (is_difference && cell(row, "scheme") == "native") return std::nullopt;
  const Json values = measure.kind == MeasureKind::rate ? row : row.value("errors", Json::object());
  const Json value = values.value(measure.member, Json());
  if (value.is_null() || value == "nan") return std::nullopt;
  return read_number(value);
}

// Adds horizontal lines over the whole x range. If a line has several rows, for example for several seeds,
// the largest value counts.
void add_level_lines(Chart& chart, const Group& group, const Measure& measure, Looks& looks) {
  for (const Json* row : group.level_lines) {
    const auto value = value_of(*row, measure);
    if (!value) continue;
    Series& series = series_in(chart, looks.series_of(*row, cell(*row, "scheme")));
    if (series.points.empty())
      series.points = {{group.rows.front().first, *value}, {group.rows.back().first, *value}};
    for (auto& point : series.points) point.second = std::max(point.second, *value);
  }
}

// True if the measure is a ratio whose values are within a small factor. A linear axis from 0 shows them
// best.
bool has_linear_axis(const Chart& chart, const Measure& measure) {
  constexpr double max_factor = 20;
  double smallest = HUGE_VAL;
  double largest = 0;
  for (const Series& series : chart.series) {
    for (const auto& point : series.points) {
      smallest = std::min(smallest, point.second);
      largest = std::max(largest, point.second);
    }
  }
  return measure.ratio && largest <= max_factor * smallest;
}

Series contract_line(const Group& group) {
  const std::string type = row_type(*group.rows.front().second);
  Series limit{.label = fmt::format("{} contract, (k + 8) {}", type, type == "fp32" ? "2^-24" : "2^-53"),
               .colour = colour_of_text,
               .style = 2,
               .points = {}};
  for (const auto& [x, row] : group.rows)
    add_point(limit, x, read_number(row->at("errors").at("contract_bound")));
  return limit;
}

Chart make_chart(const Group& group, const Dimension& dimension, const Measure& measure, Looks& looks) {
  Chart chart{.title = group.title,
              .x_label = dimension.label,
              .y_label = measure.label,
              .log_x = dimension.logarithmic};
  for (const auto& [x, row] : group.rows) {
    const auto value = value_of(*row, measure);
    if (value) add_point(series_in(chart, looks.series_of(*row, dimension.scheme(*row))), x, *value);
  }
  // A scheme with only one value of the parameter on the x axis makes no line.
  if (dimension.draws_native_as_line)
    std::erase_if(chart.series, [](const Series& series) { return series.points.size() < 2; });
  add_level_lines(chart, group, measure, looks);
  // The contract bounds componentwise errors.
  if (std::string(measure.member) == "max_componentwise" && !chart.series.empty())
    chart.limits.push_back(contract_line(group));
  chart.log_y = !has_linear_axis(chart, measure);
  return chart;
}

std::string remark_of(const Chart& chart) {
  int infinite = 0;
  for (const Series& series : chart.series) {
    for (const auto& point : series.points) {
      infinite += std::isfinite(point.second) ? 0 : 1;
    }
  }
  if (infinite == 0) return "";
  return fmt::format("Not drawn: {} points with an infinite error; the table has them.", infinite);
}

// Returns the line with points (edge, share). `share`: share of the elements, of both signs, whose error has
// a magnitude below this edge but not below the previous edge.
Series histogram_line(const Json& histogram, Series line) {
  const Json& edges = histogram.at("edges");
  const Json& counts = histogram.at("counts");
  double total = 0;
  for (const Json& count : counts) total += count.get<double>();
  const std::size_t middle = edges.size() / 2;  // index of the first positive edge
  for (std::size_t i = middle; i < edges.size(); ++i) {
    const std::size_t mirror = edges.size() - i;  // the bin of the same magnitudes with the other sign
    const double count = counts.at(i).get<double>() + (mirror == i ? 0 : counts.at(mirror).get<double>());
    line.points.emplace_back(edges.at(i).get<double>(), total > 0 ? count / total : 0);
  }
  return line;
}

// Removes bins without elements at both ends, but keeps one empty bin at each end.
void trim(Chart& chart) {
  std::size_t first = SIZE_MAX;
  std::size_t last = 0;
  for (const Series& series : chart.series) {
    for (std::size_t i = 0; i < series.points.size(); ++i) {
      if (series.points[i].second == 0) continue;
      first = std::min(first, i);
      last = std::max(last, i);
    }
  }
  if (first > last) return;
  for (Series& series : chart.series) {
    auto& points = series.points;
    points.erase(points.begin() + static_cast<std::ptrdiff_t>(std::min(last + 2, points.size())),
                 points.end());
    points.erase(points.begin(), points.begin() + static_cast<std::ptrdiff_t>(first > 0 ? first - 1 : 0));
  }
}

// Adds a line unless there is a line with the same label. If several files have the same row, the first one
// is drawn.
void add_histogram(Picture& picture, const Series& line) {
  const auto& drawn = picture.chart.series;
  const bool is_drawn = std::any_of(drawn.begin(), drawn.end(),
                                    [&](const Series& series) { return series.label == line.label; });
  if (is_drawn) {
    picture.remark = "Of several files with the same rows the first is drawn; the table has all.";
  } else {
    picture.chart.series.push_back(line);
  }
}

void add_histograms(const std::vector<Json>& rows, Looks& looks, std::vector<Figure>& figures) {
  std::vector<Figure> histograms;
  for (const Json& row : rows) {
    const Json histogram = row.value("histogram", Json());
    if (histogram.is_null()) continue;
    const std::string title = fmt::format("{}, seed {}: histogram", problem_text(row), cell(row, "seed"));
    auto figure = std::find_if(histograms.begin(), histograms.end(),
                               [&](const Figure& candidate) { return candidate.title == title; });
    if (figure == histograms.end()) {
      Chart chart{.title = title,
                  .x_label = "|C - S| / |S|, S native",
                  .y_label = "share of the elements",
                  .log_y = false,
                  .steps = true,
                  .ticks_at_points = false};
      figure = histograms.insert(histograms.end(), {title, {{.chart = chart, .name = "histogram"}}});
    }
    add_histogram(figure->pictures.front(),
                  histogram_line(histogram, looks.series_of(row, cell(row, "scheme"))));
  }
  for (Figure& figure : histograms) {
    trim(figure.pictures.front().chart);
    figures.push_back(std::move(figure));
  }
}

// True if the list has the name, or if the list is empty, which selects all names.
bool selects(const std::vector<std::string>& wanted, const std::string& name) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
}

}  // namespace

std::vector<Figure> make_figures(const std::vector<Json>& rows, const Selection& selection) {
  Looks looks(rows);
  std::vector<Figure> figures;
  for (const Dimension& dimension : dimensions_of(rows)) {
    if (!selects(selection.dimensions, dimension.label)) continue;
    for (const Group& group : groups_of(rows, dimension, selection.min_values)) {
      Figure figure{group.title, {}};
      for (std::size_t i = 0; i < measures.size(); ++i) {
        if (!selects(selection.measures, measures[i].member)) continue;
        Picture picture{.chart = make_chart(group, dimension, measures[i], looks),
                        .name = measures[i].member,
                        .measure = static_cast<int>(i)};
        if (picture.chart.series.empty()) continue;
        picture.remark = remark_of(picture.chart);
        figure.pictures.push_back(std::move(picture));
      }
      if (!figure.pictures.empty()) figures.push_back(std::move(figure));
    }
  }
  add_rooflines(rows, looks, figures);
  add_histograms(rows, looks, figures);
  return figures;
}

}  // namespace kintsugi::tools
