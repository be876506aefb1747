// A line chart as SVG: axes, ticks, lines with markers, a legend. Colours are rules for light and dark mode.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kintsugi::tools {

struct Series {
  std::string label;
  int colour = 0;                                 // -1: the colour of text
  int style = 0;                                  // dashes and marker
  std::vector<std::pair<double, double>> points;  // by x
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool log_x = true;
  std::vector<Series> series;
  std::vector<Series> limits;  // drawn without markers
  bool log_y = true;
  bool steps = false;  // a histogram: a point's y holds from the x before it to its own
  bool ticks_at_points =
      true;  // x ticks at the values of the points, where there is room; else at round values
};

// Text as XML has it.
std::string escaped(const std::string& text);

// Rules for the classes that draw() uses, and the colours of both modes.
std::string chart_style();

// A logarithmic y axis has a row of its own for the value 0; infinite values, and x = 0 on a logarithmic
// axis, are left out. A line that others lie on is drawn wider than they. `style` is put inside, for an SVG
// that stands alone.
std::string draw(const Chart& chart, const std::string& style = "");

}  // namespace kintsugi::tools
