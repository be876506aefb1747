#include "report/figures.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

namespace kintsugi::tools {

namespace {

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

std::string size_text(const Json& row, const char* name) { return cell(row.at("problem"), name); }

double size_number(const Json& row, const char* name) { return row.at("problem").at(name).get<double>(); }

// Returns "64 x 64 x 256".
std::string sizes_of(const Json& row) {
  return fmt::format("{} x {} x {}", size_text(row, "m"), size_text(row, "n"), size_text(row, "k"));
}

// Returns the text, followed by the type unless that is fp32.
std::string with_type(const Json& row, const std::string& text) {
  return row_type(row) == "fp32" ? text : text + ", " + row_type(row);
}

// A distribution with its parameter: "offset:-4" is {"offset:P", -4}, and "type3" is {"typeP", 3}.
struct ParametricDistribution {
  std::string family;
  std::optional<double> parameter;
};

ParametricDistribution distribution_of(const Json& row) {
  const std::string text = cell(row, "distribution");
  const auto colon = text.find(':');
  if (colon != std::string::npos)
    return {text.substr(0, colon) + ":P", parse_number("distribution", text.substr(colon + 1))};
  if (text.starts_with("type")) return {"typeP", parse_number("distribution", text.substr(4))};
  return {text, std::nullopt};
}

// Returns the words between colons after the scheme's name.
std::vector<std::string> parameters_of(const std::string& scheme) {
  std::vector<std::string> words;
  for (auto begin = scheme.find(':'); begin != std::string::npos;) {
    const auto end = scheme.find(':', begin + 1);
    words.push_back(scheme.substr(begin + 1, end == std::string::npos ? end : end - begin - 1));
    begin = end;
  }
  return words;
}

// Returns the number of a word KEY=NUMBER; nothing for other words.
std::optional<double> number_of(std::string_view word, const std::string& key) {
  if (!word.starts_with(key + "=")) return std::nullopt;
  word.remove_prefix(key.size() + 1);
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

// Returns the parameter of the row's scheme.
std::optional<double> parameter_of(const Json& row, const std::string& key) {
  for (const auto& word : parameters_of(cell(row, "scheme"))) {
    const auto value = number_of(word, key);
    // block=0 is a block of all of k.
    if (value) return key == "block" && *value == 0 ? size_number(row, "k") : *value;
  }
  return std::nullopt;
}

std::string without_parameter(const std::string& scheme, const std::string& key) {
  std::string text = scheme.substr(0, scheme.find(':'));
  for (const auto& word : parameters_of(scheme)) {
    if (!number_of(word, key)) text += ":" + word;
  }
  return text;
}

// Returns "uniform, 64 x 64 x 256", with the type if it is not fp32.
std::string problem_text(const Json& row) {
  return with_type(row, cell(row, "distribution") + ", " + sizes_of(row));
}

Dimension parameter_dimension(const std::string& key) {
  return {.label = key + " of the scheme",
          .title_label = key,
          .logarithmic = key == "block",
          .value = [key](const Json& row) { return parameter_of(row, key); },
          .group = problem_text,
          .scheme = [key](const Json& row) { return without_parameter(cell(row, "scheme"), key); },
          .draws_native_as_line = true};
}

// Returns the dimension of slices per operand, for rows whose operands have equal numbers of slices.
Dimension slices_dimension() {
  return {
      .label = "slices of each operand",
      .title_label = "slices of each operand",
      .logarithmic = false,
      .value =
          [](const Json& row) {
            const auto slices = parameter_of(row, "a");
            return slices == parameter_of(row, "b") ? slices : std::nullopt;
          },
      .group = problem_text,
      .scheme =
          [](const Json& row) { return without_parameter(without_parameter(cell(row, "scheme"), "a"), "b"); },
      .draws_native_as_line = true};
}

// Returns the size if both are equal.
std::optional<double> equal_sizes(const Json& row, const char* x, const char* y) {
  if (size_text(row, x) != size_text(row, y)) return std::nullopt;
  return size_number(row, x);
}

// Returns a dimension of the problem, whose lines are schemes. `group`: text of a group, without the type.
Dimension problem_dimension(const std::string& label, const std::string& title_label, bool logarithmic,
                            std::function<std::optional<double>(const Json& row)> value,
                            const std::function<std::string(const Json& row)>& group) {
  return {.label = label,
          .title_label = title_label,
          .logarithmic = logarithmic,
          .value = std::move(value),
          .group = [group](const Json& row) { return with_type(row, group(row)); },
          .scheme = [](const Json& row) { return cell(row, "scheme"); }};
}

// Returns the dimensions by which `rows` can be drawn: sizes, the distribution's parameter, and the
// parameters of schemes that occur.
std::vector<Dimension> dimensions_of(const std::vector<Json>& rows) {
  const auto distribution = [](const Json& row) { return cell(row, "distribution"); };
  std::vector<Dimension> dimensions{
      problem_dimension(
          "k", "k", true, [](const Json& row) { return size_number(row, "k"); },
          [=](const Json& row) {
            return fmt::format("{}, m = {}, n = {}", distribution(row), size_text(row, "m"),
                               size_text(row, "n"));
          }),
      problem_dimension(
          "m = n", "m = n", true, [](const Json& row) { return equal_sizes(row, "m", "n"); },
          [=](const Json& row) { return fmt::format("{}, k = {}", distribution(row), size_text(row, "k")); }),
      problem_dimension(
          "m = n = k", "m = n = k", true,
          [](const Json& row) {
            return size_text(row, "n") == size_text(row, "k") ? equal_sizes(row, "m", "n") : std::nullopt;
          },
          distribution),
      problem_dimension(
          "parameter of the distribution", "P", false,
          [](const Json& row) { return distribution_of(row).parameter; },
          [](const Json& row) { return fmt::format("{}, {}", distribution_of(row).family, sizes_of(row)); })};
  std::set<std::string> keys;
  for (const Json& row : rows) {
    for (const auto& word : parameters_of(cell(row, "scheme"))) keys.insert(word.substr(0, word.find('=')));
  }
  // The numbers of slices of A and B are one dimension.
  if (keys.erase("a") + keys.erase("b") == 2) dimensions.push_back(slices_dimension());
  for (const auto& key : keys) dimensions.push_back(parameter_dimension(key));
  return dimensions;
}

struct Roofline {
  Chart chart;
  const Json* ceilings = nullptr;
  std::set<std::string> formats;  // of the slices, whose units have ceilings
};

constexpr double to_tera = 1e-12;

// Returns the point of a row: operations per byte, and 10^12 operations per second.
std::pair<double, double> point_of(const Json& row) {
  const Json& products = row.at("products");
  const double rate = (products.is_null() ? 1 : read_number(products)) * read_number(row.at("rate"));
  return {rate / read_number(row.at("bandwidth")), to_tera * rate};
}

Roofline& roofline_of(const Json& row, std::vector<Roofline>& rooflines) {
  std::string title = fmt::format("{}: roofline of {}", cell(row, "distribution"), cell(row, "accumulator"));
  if (row_type(row) != "fp32") title += ", " + row_type(row);
  const auto found = std::find_if(rooflines.begin(), rooflines.end(),
                                  [&](const Roofline& roofline) { return roofline.chart.title == title; });
  if (found != rooflines.end()) return *found;
  Roofline roofline;
  roofline.chart.title = title;
  roofline.chart.x_label = "operations of the slices' products for a byte of A, B and C";
  roofline.chart.y_label = "10^12 operations a second";
  roofline.chart.ticks_at_points = false;
  roofline.ceilings = &row.at("ceilings");
  rooflines.push_back(std::move(roofline));
  return rooflines.back();
}

double ceiling_of(const Roofline& roofline, const std::string& name) {
  return to_tera * read_number(roofline.ceilings->at(name).at("rate"));
}

// Adds the lines of ceilings. The memory's line rises from the first point's x to the line of the fastest
// units. The lines of units are horizontal, and begin at the x from which the memory is fast enough for the
// unit's rate. A unit's line is left out if it would begin beyond the last point.
void add_ceilings(Roofline& roofline) {
  double first = std::numeric_limits<double>::infinity();
  double last = 0;
  for (const Series& series : roofline.chart.series) {
    for (const auto& point : series.points) {
      first = std::min(first, point.first);
      last = std::max(last, point.first);
    }
  }
  int style = 0;
  double knee = 0;  // operations per byte at which the memory's line meets that of the fastest units
  const double bandwidth = ceiling_of(roofline, "copy");
  for (const std::string& format : roofline.formats) {
    const double rate = ceiling_of(roofline, format);
    knee = std::max(knee, rate / bandwidth);
    if (rate / bandwidth >= last) continue;
    roofline.chart.limits.push_back({.label = fmt::format("{} units, {:.4g} T/s", format, rate),
                                     .colour = colour_of_text,
                                     .style = ++style,
                                     .points = {{std::max(first, rate / bandwidth), rate}, {last, rate}}});
  }
  const double end = knee > 0 ? std::min(knee, last) : last;
  if (first < end) {
    roofline.chart.limits.push_back({.label = fmt::format("memory, {:.3g} TB/s", bandwidth),
                                     .colour = colour_of_text,
                                     .style = 0,
                                     .points = {{first, bandwidth * first}, {end, bandwidth * end}}});
  }
}

// Adds a figure for each device, distribution and type among the rows of rate_row() that have "ceilings".
// Operations are operations of products of slices; a native product counts as one. Lines show the ceilings of
// the memory and of the units that the figure's rows use, unless they lie beyond all points.
void add_rooflines(const std::vector<Json>& rows, Looks& looks, std::vector<Figure>& figures) {
  std::vector<Roofline> rooflines;
  for (const Json& row : rows) {
    if (!row.contains("ceilings") || row.at("ceilings").is_null()) continue;
    Roofline& roofline = roofline_of(row, rooflines);
    const Json& bench = row.at("bench");
    series_in(roofline.chart, looks.series_of(row, cell(row, "scheme"))).points.push_back(point_of(bench));
    const std::string format = cell(bench, "format");
    if (roofline.ceilings->contains(format)) roofline.formats.insert(format);
  }
  for (Roofline& roofline : rooflines) {
    for (Series& series : roofline.chart.series) std::sort(series.points.begin(), series.points.end());
    add_ceilings(roofline);
    figures.push_back({roofline.chart.title, {{.chart = roofline.chart, .name = "roofline"}}});
  }
}

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
  return wanted.empty() || contains(wanted, name);
}

}  // namespace

std::string row_type(const Json& row) {
  const std::string type = cell(row.at("problem"), "type");
  return type.empty() ? "fp32" : type;
}

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
