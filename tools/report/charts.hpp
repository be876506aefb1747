// Line charts as SVG: axes, ticks, lines with markers, a legend. Colours are CSS rules for light and dark
// mode.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support.hpp"

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
// drawn wider. `style`: CSS rules; a standalone SVG needs chart_style(), and has its legend on the right.
// Without it, on a page, the legend is below, with the numbers if they have room.
std::string draw(const Chart& chart, const std::string& style = "");

// Colours distinguish schemes. Dashes and markers distinguish engines and accumulators. Labels name scheme,
// engine and accumulator.
class Looks {
 public:
  explicit Looks(const std::vector<Json>& rows);

  // Returns the line to which a row belongs. `scheme`: the row's scheme without the parameter that is on the
  // x axis. The label begins with `name` if it is given, else with the row's "label", else with the scheme.
  Series series_of(const Json& row, const std::string& scheme);
  Series series_of(const Json& row, const std::string& scheme, const std::string& name);

 private:
  std::vector<std::string> schemes_;
  std::vector<std::string> engines_;
};

// Returns the chart's line with the label of `wanted`; adds it if there is none.
Series& series_in(Chart& chart, const Series& wanted);
// Adds a point. Consecutive points with the same x come from different seeds; only the one with the largest y
// is kept.
void add_point(Series& series, double x, double y);

}  // namespace kintsugi::tools
