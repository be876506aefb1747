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

// Returns an axis over the values, with a margin; without any values, over one unit.
Axis axis_with_margin(bool logarithmic, const std::vector<double>& values, double start, double end);
// Returns an axis whose ends are ticks. A linear one includes 0; a logarithmic one ends at whole decades, or
// at 1, 2 or 5 times a power of ten if the values are within two decades.
Axis axis_between_ticks(bool logarithmic, const std::vector<double>& values, double start, double end);

struct Tick {
  double value = 0;
  std::string label;
};

// Returns the label: "0.002", "50", "1e-7", "2e5".
std::string tick_label(double value);

// Returns how many pixels of the axis a label takes, with the space to the next one.
using LabelExtent = std::function<double(const std::string&)>;

// Returns the largest set of ticks at 1, 2 and 5 times powers of ten whose labels do not collide: on a
// logarithmic axis 1, 2, 5, 10, ..., or decades, or every second decade and so on; on a linear one at a
// distance of 1, 2 or 5 times a power of ten.
std::vector<Tick> round_ticks(const Axis& axis, const LabelExtent& extent);
// Returns ticks at the values themselves if their labels do not collide, else round ones.
std::vector<Tick> ticks_at(const std::vector<double>& values, const Axis& axis, const LabelExtent& extent);

}  // namespace kintsugi::tools
