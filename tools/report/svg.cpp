#include "report/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

namespace kintsugi::tools {

namespace {

// Light and dark of each colour, with a contrast of 3 and more against the page.
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

constexpr double left = 64;
constexpr double top = 40;
constexpr double plot_width = 460;
constexpr double legend_left = left + plot_width + 22;
constexpr double legend_line = 17;

struct Axis {
  double from = 0;  // in the axis' own measure: log10 or plain
  double to = 1;
  double start = 0;  // pixels
  double end = 0;
  bool logarithmic = true;

  double measure(double value) const { return logarithmic ? std::log10(value) : value; }
  double place(double value) const { return start + (measure(value) - from) / (to - from) * (end - start); }
};

bool drawable(const Chart& chart, const std::pair<double, double>& point) {
  return std::isfinite(point.first) && (!chart.log_x || point.first > 0) && std::isfinite(point.second) &&
         (!chart.log_y || point.second > 0);
}

std::vector<std::pair<double, double>> drawable_points(const Chart& chart) {
  std::vector<std::pair<double, double>> points;
  const auto add = [&](const Series& series) {
    for (const auto& point : series.points) {
      if (drawable(chart, point)) points.push_back(point);
    }
  };
  for (const Series& series : chart.series) add(series);
  for (const Series& limit : chart.limits) add(limit);
  return points;
}

Axis x_axis(const Chart& chart, const std::vector<std::pair<double, double>>& points) {
  Axis axis{.start = left, .end = left + plot_width, .logarithmic = chart.log_x};
  if (points.empty()) return axis;
  axis.from = HUGE_VAL;
  axis.to = -HUGE_VAL;
  for (const auto& point : points) {
    axis.from = std::min(axis.from, axis.measure(point.first));
    axis.to = std::max(axis.to, axis.measure(point.first));
  }
  const double margin = axis.to > axis.from ? 0.03 * (axis.to - axis.from) : 0.5;
  axis.from -= margin;
  axis.to += margin;
  return axis;
}

// Of 1, 2 and 5 times a power of ten the smallest that makes at most ten steps.
double step_of(double length) {
  const double decade = std::pow(10.0, std::floor(std::log10(length / 10)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (length <= 10 * factor * decade * (1 + 1e-9)) return factor * decade;
  }
  return 10 * decade;
}

// Whole decades, or whole steps from 0.
Axis y_axis(const Chart& chart, const std::vector<std::pair<double, double>>& points, double height) {
  Axis axis{
      .from = chart.log_y ? -8.0 : 0.0, .to = chart.log_y ? 0.0 : 1.0, .start = top + height, .end = top};
  axis.logarithmic = chart.log_y;
  if (points.empty()) return axis;
  axis.from = chart.log_y ? HUGE_VAL : 0;
  axis.to = -HUGE_VAL;
  for (const auto& point : points) {
    const double value = axis.measure(point.second);
    axis.from = std::min(axis.from, chart.log_y ? std::floor(value) : value);
    axis.to = std::max(axis.to, chart.log_y ? std::ceil(value) : value);
  }
  if (axis.to == axis.from) axis.to += 1;
  if (!chart.log_y) {
    const double step = step_of(axis.to - axis.from);
    axis.from = step * std::floor(axis.from / step);
    axis.to = step * std::ceil(axis.to / step);
  }
  return axis;
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

// The values that were measured are the ticks, as far as there is room.
std::string x_ticks(const Chart& chart, const Axis& axis, double bottom,
                    const std::vector<std::pair<double, double>>& points) {
  constexpr double room = 38;
  std::set<double> values;
  for (const auto& point : points) values.insert(point.first);
  std::string result;
  double last = -HUGE_VAL;
  for (const double value : values) {
    const double x = axis.place(value);
    if (x - last < room) continue;
    last = x;
    result += line_between(x, top, x, bottom, "grid");
    result += text_at(x, bottom + 16, "middle", fmt::format("{:g}", value));
  }
  return result + text_at(left + plot_width / 2, bottom + 34, "middle", chart.x_label);
}

std::string y_ticks(const Chart& chart, const Axis& axis) {
  const double step =
      chart.log_y ? std::max(1.0, std::floor((axis.to - axis.from) / 10)) : step_of(axis.to - axis.from);
  std::string result;
  for (int i = 0; axis.from + i * step <= axis.to + step * 1e-6; ++i) {
    const double place = axis.from + i * step;
    const double y = axis.place(chart.log_y ? std::pow(10.0, place) : place);
    result += line_between(left, y, left + plot_width, y, "grid");
    result += text_at(left - 6, y + 4, "end",
                      chart.log_y ? fmt::format("1e{:.0f}", place) : fmt::format("{:.4g}", place));
  }
  return result + text_at(4, top - 12, "start", chart.y_label);
}

std::string marker(int style, double x, double y) {
  switch (style % 6) {
    case 0: return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>", x, y);
    case 1: return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"6\" height=\"6\"/>", x - 3, y - 3);
    case 2: return fmt::format("<path d=\"M{:.1f} {:.1f}l4 7h-8z\"/>", x, y - 4);
    case 3: return fmt::format("<path d=\"M{:.1f} {:.1f}l4 4l-4 4l-4 -4z\"/>", x, y - 4);
    case 4: return fmt::format("<path d=\"M{:.1f} {:.1f}h8l-4 7z\"/>", x - 4, y - 3);
    default: return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"2\" height=\"9\"/>", x - 1, y - 4.5);
  }
}

std::string class_of(const Series& series) {
  if (series.colour < 0) return "ink";
  return fmt::format("c{}", static_cast<std::size_t>(series.colour) % colours.size());
}

std::string stroke(const Series& series, const std::string& path) {
  const char* dash = dashes[static_cast<std::size_t>(series.style) % dashes.size()];
  return fmt::format("<path class=\"line\" d=\"{}\" stroke-dasharray=\"{}\"/>", path, *dash ? dash : "none");
}

std::string line_of(const Chart& chart, const Series& series, const std::function<double(double)>& x,
                    const std::function<double(double)>& y, bool markers) {
  std::string path;
  std::string marks;
  for (const auto& point : series.points) {
    if (!drawable(chart, point)) continue;
    path += path.empty() ? "M" : chart.steps ? fmt::format("H{:.1f}L", x(point.first)) : "L";
    path += fmt::format("{:.1f} {:.1f}", x(point.first), y(point.second));
    if (markers) marks += marker(series.style, x(point.first), y(point.second));
  }
  return fmt::format("<g class=\"series {}\"><title>{}</title>{}{}</g>\n", class_of(series),
                     escaped(series.label), stroke(series, path.empty() ? "M0 0" : path), marks);
}

std::string legend_entry(const Series& series, double y, bool markers) {
  const double x = legend_left;
  return fmt::format("<g class=\"{}\">{}{}</g>\n", class_of(series),
                     stroke(series, fmt::format("M{:.1f} {:.1f}h30", x, y)),
                     markers ? marker(series.style, x + 15, y) : "") +
         text_at(x + 36, y + 4, "start", series.label);
}

std::string legend(const Chart& chart) {
  std::string result;
  double y = top + 6;
  for (const Series& series : chart.series) {
    result += legend_entry(series, y, !chart.steps);
    y += legend_line;
  }
  for (const Series& limit : chart.limits) {
    result += legend_entry(limit, y, false);
    y += legend_line;
  }
  return result;
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

namespace {

struct Palette {
  const char* ink;
  const char* paper;
  const char* soft;
};

// Colours stand in the rules themselves: not every program that shows a picture knows CSS variables.
std::string coloured_rules(const Palette& palette, bool dark) {
  std::string rules = fmt::format(
      "body{{color:{0};background:{1}}}td,th{{border-color:{2}}}.no{{color:{3}}}.ink{{stroke:{0};fill:{0}}}"
      ".grid{{stroke:{2}}}.label,.heading{{fill:{0};stroke:none}}.paper{{fill:{1}}}",
      palette.ink, palette.paper, palette.soft, dark ? colours.back().second : colours.back().first);
  for (std::size_t i = 0; i < colours.size(); ++i) {
    rules += fmt::format(".c{0}{{stroke:{1};fill:{1}}}", i, dark ? colours[i].second : colours[i].first);
  }
  return rules;
}

}  // namespace

std::string chart_style() {
  const Palette light{"#1b1f24", "#ffffff", "#d8dee4"};
  const Palette dark{"#e6e8eb", "#15181c", "#363c44"};
  return coloured_rules(light, false) + "\n@media (prefers-color-scheme:dark){" + coloured_rules(dark, true) +
         "}\n.line{fill:none;stroke-width:1.6}.grid{stroke-width:1}.label{font:12px sans-serif}"
         ".heading{font:bold 13px sans-serif}\n";
}

std::string draw(const Chart& chart, const std::string& style) {
  const double lines = static_cast<double>(chart.series.size() + chart.limits.size()) + 1;
  const double height = std::max(280.0, lines * legend_line);
  const auto points = drawable_points(chart);
  const Axis x = x_axis(chart, points);
  const Axis y = y_axis(chart, points, height);
  std::size_t longest = 0;
  for (const Series& series : chart.series) longest = std::max(longest, series.label.size());
  for (const Series& limit : chart.limits) longest = std::max(longest, limit.label.size());
  const double width = std::max(legend_left + 44 + 7 * static_cast<double>(longest),
                                8 + 8 * static_cast<double>(chart.title.size()));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\">\n<title>{2}</title>\n",
      width, top + height + 44, escaped(chart.title));
  if (!style.empty()) {
    svg += "<style>" + style + "</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n";
    svg += text_at(4, 14, "start", chart.title, "heading");
  }
  svg += x_ticks(chart, x, top + height, points) + y_ticks(chart, y);
  const auto place_x = [&x](double value) { return x.place(value); };
  const auto place_y = [&y](double value) { return y.place(value); };
  for (const Series& limit : chart.limits) svg += line_of(chart, limit, place_x, place_y, false);
  for (const Series& series : chart.series) svg += line_of(chart, series, place_x, place_y, !chart.steps);
  return svg + legend(chart) + "</svg>\n";
}

}  // namespace kintsugi::tools
