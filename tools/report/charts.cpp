#include "report/charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>

namespace kintsugi::tools {

namespace {

struct Axis {
  double from = 0;  // scaled() values at the ends
  double to = 1;
  double start = 0;  // pixels at the ends
  double end = 0;
  bool logarithmic = true;

  // the value, or its logarithm on a logarithmic axis
  double scaled(double value) const { return logarithmic ? std::log10(value) : value; }
  double pixel(double value) const { return start + (scaled(value) - from) / (to - from) * (end - start); }
};

struct Tick {
  double value = 0;
  std::string label;
};

// Returns the number of pixels of the axis that a label takes, including the space to the next label.
using LabelExtent = std::function<double(const std::string&)>;

// Rounding errors that are accepted, as a fraction of a decade or a step: 10^log10(x) need not equal x.
constexpr double tolerance = 1e-9;

// Ticks are 1, 2 or 5 times a power of ten. Returns the largest tick that is at most `value`.
double round_below(double value) {
  const double decade = std::pow(10.0, std::floor(std::log10(value) + tolerance));
  double best = decade;
  for (const double factor : {2.0, 5.0}) {
    if (factor * decade <= value * (1 + tolerance)) best = factor * decade;
  }
  return best;
}

// Returns the smallest tick that is at least `value`.
double round_above(double value) {
  const double decade = std::pow(10.0, std::floor(std::log10(value) + tolerance));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * decade >= value * (1 - tolerance)) return factor * decade;
  }
  return 10 * decade;
}

bool is_inside(const Axis& axis, double value) {
  const double slack = tolerance * std::fabs(axis.to - axis.from);
  const double scaled = axis.scaled(value);
  return scaled >= axis.from - slack && scaled <= axis.to + slack;
}

void set_logarithmic_ends(Axis& axis, double smallest, double largest) {
  if (std::log10(largest / smallest) >= 2) {
    axis.from = std::floor(std::log10(smallest) + tolerance);
    axis.to = std::ceil(std::log10(largest) - tolerance);
    return;
  }
  double low = round_below(smallest);
  double high = round_above(largest);
  const bool is_single_tick = high <= low * (1 + tolerance);
  if (is_single_tick) {  // The axis then ends at the two neighbouring ticks.
    low = round_below(low * 0.6);
    high = round_above(high * 1.5);
  }
  axis.from = std::log10(low);
  axis.to = std::log10(high);
}

void set_linear_ends(Axis& axis, double smallest, double largest) {
  axis.from = std::min(0.0, smallest);
  axis.to = std::max(0.0, largest);
  if (axis.to == axis.from) axis.to += 1;
  const double step = round_above((axis.to - axis.from) / 10);
  axis.from = step * std::floor(axis.from / step + tolerance);
  axis.to = step * std::ceil(axis.to / step - tolerance);
}

// True if labels of neighbouring ticks would overlap.
bool collide(const std::vector<Tick>& ticks, const Axis& axis, const LabelExtent& extent) {
  for (std::size_t i = 1; i < ticks.size(); ++i) {
    const double distance = std::fabs(axis.pixel(ticks[i].value) - axis.pixel(ticks[i - 1].value));
    if (distance < (extent(ticks[i].label) + extent(ticks[i - 1].label)) / 2) return true;
  }
  return false;
}

// Returns the label: "0.002", "50", "1e-7", "2e5".
std::string tick_label(double value) {
  const double magnitude = std::fabs(value);
  const bool needs_no_exponent = magnitude == 0 || (magnitude >= 0.999e-3 && magnitude < 1e6);
  if (needs_no_exponent) return fmt::format("{:.6g}", value);
  const std::string text = fmt::format("{:.2e}", value);  // "2.00e-07"
  const auto e = text.find('e');
  return fmt::format("{:g}e{}", std::stod(text.substr(0, e)), std::stoi(text.substr(e + 1)));
}

// Returns ticks at every `every`-th power of ten, times each of the factors.
std::vector<Tick> decades(const Axis& axis, int every, const std::vector<double>& factors) {
  std::vector<Tick> ticks;
  const int first = static_cast<int>(std::floor(axis.from));
  for (int decade = first; decade <= axis.to + tolerance; ++decade) {
    if (decade % every != 0) continue;
    for (const double factor : factors) {
      const double value = factor * std::pow(10.0, decade);
      if (is_inside(axis, value)) ticks.push_back({value, tick_label(value)});
    }
  }
  return ticks;
}

// Returns ticks at multiples of a step.
std::vector<Tick> steps(const Axis& axis, double step) {
  std::vector<Tick> ticks;
  for (double i = std::ceil(axis.from / step - tolerance); i * step <= axis.to + tolerance * step; ++i) {
    const double value = i * step + 0.0;  // -0.0 + 0.0 is 0.0
    ticks.push_back({value, tick_label(value)});
  }
  return ticks;
}

// Returns an axis over the values, with a margin. Without values, the axis covers one unit.
Axis axis_with_margin(bool logarithmic, const std::vector<double>& values, double start, double end) {
  Axis axis{.start = start, .end = end, .logarithmic = logarithmic};
  if (values.empty()) return axis;
  const auto [smallest, largest] = std::minmax_element(values.begin(), values.end());
  axis.from = axis.scaled(*smallest);
  axis.to = axis.scaled(*largest);
  const double margin = axis.to > axis.from ? 0.03 * (axis.to - axis.from) : 0.5;
  axis.from -= margin;
  axis.to += margin;
  return axis;
}

// Returns an axis whose ends are ticks. A linear axis includes 0. A logarithmic axis ends at whole decades,
// or at 1, 2 or 5 times a power of ten if the values are within two decades.
Axis axis_between_ticks(bool logarithmic, const std::vector<double>& values, double start, double end) {
  Axis axis{.start = start, .end = end, .logarithmic = logarithmic};
  if (values.empty()) return axis;
  const auto [smallest, largest] = std::minmax_element(values.begin(), values.end());
  if (logarithmic) {
    set_logarithmic_ends(axis, *smallest, *largest);
  } else {
    set_linear_ends(axis, *smallest, *largest);
  }
  return axis;
}

// Returns as many ticks at round values as have room for their labels. On a logarithmic axis these are 1, 2,
// 5, 10, ..., or decades, or every second decade and so on. On a linear axis their distance is 1, 2 or 5
// times a power of ten.
std::vector<Tick> round_ticks(const Axis& axis, const LabelExtent& extent) {
  if (axis.logarithmic) {
    std::vector<Tick> ticks = decades(axis, 1, {1, 2, 5});
    for (int every = 1; collide(ticks, axis, extent); ++every) ticks = decades(axis, every, {1});
    return ticks;
  }
  double step = round_above((axis.to - axis.from) / 10);
  std::vector<Tick> ticks = steps(axis, step);
  while (collide(ticks, axis, extent)) {
    step = round_above(1.1 * step);
    ticks = steps(axis, step);
  }
  return ticks;
}

// Returns ticks at the values themselves if their labels do not collide, else ticks at round values.
std::vector<Tick> ticks_at(const std::vector<double>& values, const Axis& axis, const LabelExtent& extent) {
  std::vector<Tick> ticks;
  for (const double value : std::set<double>(values.begin(), values.end()))
    ticks.push_back({value, tick_label(value)});
  return collide(ticks, axis, extent) ? round_ticks(axis, extent) : ticks;
}

// Colours of lines: for light mode and for dark mode. Each has a contrast of at least 3 against the page.
constexpr std::array<std::pair<const char*, const char*>, 10> colours{{{"#2a6fdb", "#6ea8ff"},
                                                                       {"#c65d00", "#ff9d4d"},
                                                                       {"#1b7f3b", "#4fc978"},
                                                                       {"#b0267a", "#f27bbf"},
                                                                       {"#0b7a8a", "#3fc3d6"},
                                                                       {"#6a3fc4", "#b39bff"},
                                                                       {"#7a5230", "#d6a77a"},
                                                                       {"#c02c2c", "#ff7b7b"},
                                                                       {"#6b7a00", "#c3d13e"},
                                                                       {"#5a6472", "#a3adba"}}};
constexpr std::array<const char*, 6> dashes{"", "7 3", "2 3", "9 3 2 3", "12 4", "4 2"};

// Positions and sizes in pixels.
constexpr double left = 64;  // left and upper edge of the plot
constexpr double top = 40;
constexpr double legend_line = 17;
constexpr double value_width = 58;  // of a column of numbers in the legend

// Arrangement of plot and legend. A picture of its own has the legend on its right. A page has it below a
// narrower plot, so that the text stays legible where the page is as narrow as a telephone.
struct Layout {
  double plot_width;
  double least_height;
  bool has_legend_below;
};
constexpr Layout picture_layout{460, 280, false};
constexpr Layout page_layout{330, 220, true};

// Height of the row below a logarithmic y axis for points with the value 0, which the axis cannot show.
constexpr double zero_row = 22;

// The axes, and the place of points with y = 0, which a logarithmic axis cannot show.
struct Places {
  Axis x;
  Axis y;
  double bottom = 0;       // lower edge of the plot
  double right = 0;        // right edge
  bool has_zeros = false;  // y = 0 is drawn at the bottom, below the axis

  double y_of(double value) const { return value == 0 && y.logarithmic ? bottom : y.pixel(value); }
};

// True if both axes can show the point.
bool is_drawable(const Chart& chart, const std::pair<double, double>& point) {
  return std::isfinite(point.first) && (!chart.log_x || point.first > 0) && std::isfinite(point.second) &&
         (!chart.log_y || point.second >= 0);
}

std::vector<std::pair<double, double>> drawable_points(const Chart& chart) {
  std::vector<std::pair<double, double>> points;
  for (const auto* list : {&chart.series, &chart.limits}) {
    for (const Series& series : *list) {
      for (const auto& point : series.points) {
        if (is_drawable(chart, point)) points.push_back(point);
      }
    }
  }
  return points;
}

Places places_of(const Chart& chart, double width, double height) {
  std::vector<double> xs;
  std::vector<double> ys;
  Places places;
  places.bottom = top + height;
  places.right = left + width;
  for (const auto& [x, y] : drawable_points(chart)) {
    xs.push_back(x);
    const bool is_below_axis = chart.log_y && y == 0;
    places.has_zeros = places.has_zeros || is_below_axis;
    if (!is_below_axis) ys.push_back(y);
  }
  places.x = axis_with_margin(chart.log_x, xs, left, places.right);
  places.y = axis_between_ticks(chart.log_y, ys, places.bottom - (places.has_zeros ? zero_row : 0), top);
  return places;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text,
                    const char* kind = "label") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x, y,
                     anchor, kind, escaped(text));
}

std::string line_between(double x1, double y1, double x2, double y2, const char* kind) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1,
                     x2, y2, kind);
}

std::string x_ticks(const Chart& chart, const Places& places) {
  std::vector<double> values;
  for (const auto& point : drawable_points(chart)) values.push_back(point.first);
  const LabelExtent label_width = [](const std::string& label) {
    return 7.0 * static_cast<double>(label.size()) + 10;
  };
  const auto ticks =
      chart.ticks_at_points ? ticks_at(values, places.x, label_width) : round_ticks(places.x, label_width);
  std::string result;
  for (const Tick& tick : ticks) {
    const double x = places.x.pixel(tick.value);
    result += line_between(x, top, x, places.bottom, "grid");
    result += text_at(x, places.bottom + 16, "middle", tick.label);
  }
  return result + text_at((left + places.right) / 2, places.bottom + 34, "middle", chart.x_label);
}

std::string y_ticks(const Chart& chart, const Places& places) {
  const LabelExtent label_height = [](const std::string&) { return 18.0; };
  auto ticks = round_ticks(places.y, label_height);
  if (places.has_zeros) ticks.insert(ticks.begin(), Tick{0, "0"});
  std::string result;
  for (const Tick& tick : ticks) {
    const double y = places.y_of(tick.value);
    result += line_between(left, y, places.right, y, "grid");
    result += text_at(left - 6, y + 4, "end", tick.label);
  }
  return result + text_at(4, top - 12, "start", chart.y_label);
}

// Returns the marker of a style at a point; `s` is its size relative to the usual one.
std::string marker(int style, double x, double y, double s = 1) {
  const auto rectangle = [&](double width, double height) {
    return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:g}\" height=\"{:g}\"/>", x - width / 2,
                       y - height / 2, width, height);
  };
  switch (style % 6) {
    case 0: return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:g}\"/>", x, y, 3 * s);
    case 1: return rectangle(6 * s, 6 * s);
    case 2:
      return fmt::format("<path d=\"M{:.1f} {:.1f}l{:g} {:g}h{:g}z\"/>", x, y - 4 * s, 4 * s, 7 * s, -8 * s);
    case 3:
      return fmt::format("<path d=\"M{0:.1f} {1:.1f}l{2:g} {2:g}l{3:g} {2:g}l{3:g} {3:g}z\"/>", x, y - 4 * s,
                         4 * s, -4 * s);
    case 4:
      return fmt::format("<path d=\"M{:.1f} {:.1f}h{:g}l{:g} {:g}z\"/>", x - 4 * s, y - 3 * s, 8 * s, -4 * s,
                         7 * s);
    default: return rectangle(2 * s, 9 * s);
  }
}

std::string class_of(const Series& series) {
  if (series.colour < 0) return "ink";
  return fmt::format("c{}", static_cast<std::size_t>(series.colour) % colours.size());
}

constexpr double line_width = 1.6;

std::string stroke(const Series& series, const std::string& path, double width = line_width) {
  const char* dash = dashes[static_cast<std::size_t>(series.style) % dashes.size()];
  const std::string wider = width > line_width ? fmt::format(" style=\"stroke-width:{:.1f}\"", width) : "";
  return fmt::format("<path class=\"line\" d=\"{}\" stroke-dasharray=\"{}\"{}/>", path, *dash ? dash : "none",
                     wider);
}

// True if two lines coincide wherever both have a point, so that the later one would hide the earlier.
bool coincide(const Series& earlier, const Series& later, const Chart& chart, const Places& places) {
  constexpr double max_distance = 1.5;  // in pixels
  int shared_points = 0;
  for (const auto& point : earlier.points) {
    for (const auto& candidate : later.points) {
      if (candidate.first != point.first || !is_drawable(chart, point) || !is_drawable(chart, candidate))
        continue;
      if (std::fabs(places.y_of(point.second) - places.y_of(candidate.second)) > max_distance) return false;
      ++shared_points;
    }
  }
  return shared_points > 0;
}

enum class Markers : std::uint8_t { none, at_points };

// Returns the path of a line with its markers. `covering_lines`: number of later lines that coincide with
// this line. The more there are, the wider the line is, so that it shows on both sides of them.
std::string line_of(const Chart& chart, const Series& series, const Places& places, int covering_lines,
                    Markers markers) {
  std::string path;
  std::string marks;
  for (const auto& point : series.points) {
    if (!is_drawable(chart, point)) continue;
    const double x = places.x.pixel(point.first);
    const double y = places.y_of(point.second);
    path += path.empty() ? "M" : chart.steps ? fmt::format("H{:.1f}L", x) : "L";
    path += fmt::format("{:.1f} {:.1f}", x, y);
    if (markers == Markers::at_points) marks += marker(series.style, x, y, 1 + 0.5 * covering_lines);
  }
  return fmt::format(
      "<g class=\"series {}\"><title>{}</title>{}{}</g>\n", class_of(series), escaped(series.label),
      stroke(series, path.empty() ? "M0 0" : path, line_width * (1 + 2 * covering_lines)), marks);
}

// Returns the markers of a chart's lines. A histogram has none.
Markers markers_of(const Chart& chart) { return chart.steps ? Markers::none : Markers::at_points; }

std::string lines_of(const Chart& chart, const Places& places) {
  std::string svg;
  for (const Series& limit : chart.limits) svg += line_of(chart, limit, places, 0, Markers::none);
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    int covering_lines = 0;
    for (std::size_t later = i + 1; later < chart.series.size(); ++later)
      covering_lines += coincide(chart.series[i], chart.series[later], chart, places) ? 1 : 0;
    svg += line_of(chart, chart.series[i], places, covering_lines, markers_of(chart));
  }
  return svg;
}

std::string legend_row(const Series& series, double x, double y, Markers markers) {
  return fmt::format("<g class=\"{}\">{}{}</g>\n", class_of(series),
                     stroke(series, fmt::format("M{:.1f} {:.1f}h30", x, y)),
                     markers == Markers::at_points ? marker(series.style, x + 15, y) : "") +
         text_at(x + 36, y + 4, "start", series.label);
}

std::string legend(const Chart& chart, double x, double y) {
  std::string result;
  for (const Series& series : chart.series) {
    result += legend_row(series, x, y, markers_of(chart));
    y += legend_line;
  }
  for (const Series& limit : chart.limits) {
    result += legend_row(limit, x, y, Markers::none);
    y += legend_line;
  }
  return result;
}

// Pixels that the labels of a legend take, with their lines.
double legend_width(const Chart& chart) {
  std::size_t longest = 0;
  for (const Series& series : chart.series) longest = std::max(longest, series.label.size());
  for (const Series& limit : chart.limits) longest = std::max(longest, limit.label.size());
  return 44 + 7 * static_cast<double>(longest);
}

// Returns the x of a chart whose legend lists the numbers; none if there are too many to fit.
std::vector<double> listed_values(const Chart& chart) {
  std::set<double> values;
  for (const Series& series : chart.series) {
    for (const auto& point : series.points) values.insert(point.first);
  }
  const double room = left + page_layout.plot_width - legend_width(chart);
  if (chart.steps || static_cast<double>(values.size()) * value_width > room + value_width) return {};
  return {values.begin(), values.end()};
}

// Returns a number of a legend: "0.123", "98.7", "5.5e-08".
std::string listed_number(double value) {
  return std::fabs(value) < 1e-3 && value != 0 ? fmt::format("{:.1e}", value) : fmt::format("{:.3g}", value);
}

// Returns the numbers at `xs` beside the rows of a legend, under a row of the xs.
std::string listed_numbers(const Chart& chart, const std::vector<double>& xs, double y) {
  std::string result;
  double end = legend_width(chart) + value_width;
  for (const double x : xs) {
    double row = y + 4;
    result += text_at(end, row, "end", tick_label(x), "heading");
    for (const Series& series : chart.series) {
      row += legend_line;
      for (const auto& point : series.points) {
        if (point.first == x) result += text_at(end, row, "end", listed_number(point.second));
      }
    }
    end += value_width;
  }
  return result;
}

struct Palette {
  const char* ink;  // text and lines
  const char* paper;
  const char* soft;  // grid and borders
};

enum class Mode : std::uint8_t { light, dark };

// Returns CSS rules with the colours written out, since some programs that show pictures lack CSS variables.
std::string coloured_rules(const Palette& palette, Mode mode) {
  const auto in_mode = [mode](const std::pair<const char*, const char*>& colour) {
    return mode == Mode::dark ? colour.second : colour.first;
  };
  std::string rules = fmt::format(
      "body{{color:{0};background:{1}}}td,th{{border-color:{2}}}.no{{color:{3}}}.ink{{stroke:{0};fill:{0}}}"
      ".grid{{stroke:{2}}}.label,.heading{{fill:{0};stroke:none}}.paper{{fill:{1}}}",
      palette.ink, palette.paper, palette.soft, in_mode(colours.back()));
  for (std::size_t i = 0; i < colours.size(); ++i) {
    rules += fmt::format(".c{0}{{stroke:{1};fill:{1}}}", i, in_mode(colours[i]));
  }
  return rules;
}

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

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return result;
}

std::string chart_style() {
  const Palette light{"#1b1f24", "#ffffff", "#d8dee4"};
  const Palette dark{"#e6e8eb", "#15181c", "#363c44"};
  return coloured_rules(light, Mode::light) + "\n@media (prefers-color-scheme:dark){" +
         coloured_rules(dark, Mode::dark) +
         "}\n.line{fill:none;stroke-width:1.6}.grid{stroke-width:1}.label{font:12px sans-serif}"
         ".heading{font:bold 13px sans-serif}\n";
}

std::string draw(const Chart& chart, const std::string& style) {
  const Layout& layout = style.empty() ? page_layout : picture_layout;
  const double rows = static_cast<double>(chart.series.size() + chart.limits.size()) + 1;
  const double plot_height = std::max(layout.least_height, layout.has_legend_below ? 0 : rows * legend_line);
  const Places places = places_of(chart, layout.plot_width, plot_height);
  const double title_width = 8 + 8 * static_cast<double>(chart.title.size());
  double width = std::max(places.right + 22 + legend_width(chart), title_width);
  double height = places.bottom + 44;
  std::string key = legend(chart, places.right + 22, top + 6);
  if (layout.has_legend_below) {
    const std::vector<double> xs = listed_values(chart);
    const double y = height + 14;
    key = listed_numbers(chart, xs, y) + legend(chart, 4, xs.empty() ? y : y + legend_line);
    width =
        std::max({places.right + 12, legend_width(chart) + value_width * static_cast<double>(xs.size()) + 12,
                  8 + 6.5 * static_cast<double>(chart.y_label.size())});
    height = y + (rows + (xs.empty() ? 0 : 1)) * legend_line;
  }
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\">\n<title>{2}</title>\n",
      width, height, escaped(chart.title));
  if (!style.empty()) {
    svg += "<style>" + style + "</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n";
    svg += text_at(4, 14, "start", chart.title, "heading");
  }
  return svg + x_ticks(chart, places) + y_ticks(chart, places) + lines_of(chart, places) + key + "</svg>\n";
}

Looks::Looks(const std::vector<Json>& rows) {
  for (const Json& row : rows) {
    if (cell(row, "scheme") != "native") find_or_append(schemes_, cell(row, "scheme"));
    find_or_append(engines_, engine_of(row));
  }
}

Series Looks::series_of(const Json& row, const std::string& scheme) {
  return series_of(row, scheme, row.contains("label") ? cell(row, "label") : scheme);
}

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
