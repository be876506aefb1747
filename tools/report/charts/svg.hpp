// A line chart as SVG: axes, ticks, lines with markers, a legend. Colours are CSS rules for light and dark
// mode.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kintsugi::tools {

inline constexpr int colour_of_text = -1;

struct Series {
  std::string label;
  int colour = 0;                                 // index of a colour, or colour_of_text
  int style = 0;                                  // index of dashes and of a marker
  std::vector<std::pair<double, double>> points;  // ordered by x
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool log_x = true;
  std::vector<Series> series = {};
  std::vector<Series> limits = {};  // drawn without markers
  bool log_y = true;
  bool steps = false;  // true: a histogram, where a point's y holds from the previous x to its own x
  bool ticks_at_points =
      true;  // true: x ticks are at the points' values if there is room, else at round values
};

// Returns the text escaped for XML.
std::string escaped(const std::string& text);

// Returns the CSS rules for the classes that draw() uses, with the colours of both modes.
std::string chart_style();

// Returns the chart as SVG. A logarithmic y axis has a separate row for the value 0. Points with infinite
// values, and points with x = 0 on a logarithmic axis, are left out. If lines coincide, the earlier ones are
// drawn wider. `style`: CSS rules; a standalone SVG needs chart_style().
std::string draw(const Chart& chart, const std::string& style = "");

}  // namespace kintsugi::tools
