// Axes of a chart: their range of values, positions of values, and ticks at 1, 2 and 5 times powers of ten.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace kintsugi::tools {

struct Axis {
  double from = 0;  // scaled() values at the ends
  double to = 1;
  double start = 0;  // pixels at the ends
  double end = 0;
  bool logarithmic = true;

  double scaled(double value) const;  // the value, or its logarithm on a logarithmic axis
  double pixel(double value) const;
};

// Returns an axis over the values, with a margin. Without values, the axis covers one unit.
Axis axis_with_margin(bool logarithmic, const std::vector<double>& values, double start, double end);
// Returns an axis whose ends are ticks. A linear axis includes 0. A logarithmic axis ends at whole decades,
// or at 1, 2 or 5 times a power of ten if the values are within two decades.
Axis axis_between_ticks(bool logarithmic, const std::vector<double>& values, double start, double end);

struct Tick {
  double value = 0;
  std::string label;
};

// Returns the label: "0.002", "50", "1e-7", "2e5".
std::string tick_label(double value);

// Returns the number of pixels of the axis that a label takes, including the space to the next label.
using LabelExtent = std::function<double(const std::string&)>;

// Returns as many ticks at round values as have room for their labels. On a logarithmic axis these are 1, 2,
// 5, 10, ..., or decades, or every second decade and so on. On a linear axis their distance is 1, 2 or 5
// times a power of ten.
std::vector<Tick> round_ticks(const Axis& axis, const LabelExtent& extent);
// Returns ticks at the values themselves if their labels do not collide, else ticks at round values.
std::vector<Tick> ticks_at(const std::vector<double>& values, const Axis& axis, const LabelExtent& extent);

}  // namespace kintsugi::tools
