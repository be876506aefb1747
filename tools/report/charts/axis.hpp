// Axes of a chart: which values they span, where a value lies, and ticks at 1, 2 and 5 times powers of ten.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace kintsugi::tools {

struct Axis {
  double from = 0;  // in the axis' own measure: log10 or plain
  double to = 1;
  double start = 0;  // pixels
  double end = 0;
  bool logarithmic = true;

  double measure(double value) const;
  double place(double value) const;
};

// An axis over values, with a margin; without values over one unit.
Axis axis_with_margin(bool logarithmic, const std::vector<double>& values, double start, double end);
// An axis whose ends are ticks. A plain one has 0 on it; a logarithmic one ends at whole decades, or at 1, 2
// or 5 times a power of ten where the values are within two decades.
Axis axis_between_ticks(bool logarithmic, const std::vector<double>& values, double start, double end);

struct Tick {
  double value = 0;
  std::string label;
};

// "0.002", "50", "1e-7", "2e5".
std::string tick_label(double value);

// Pixels along the axis that a label takes, the space to the next included.
using LabelExtent = std::function<double(const std::string&)>;

// The most ticks at 1, 2 and 5 times powers of ten whose labels do not collide: on a logarithmic axis 1, 2,
// 5, 10, ..., or decades, or every second decade and so on; on a plain one at a distance of 1, 2 or 5 times a
// power of ten.
std::vector<Tick> round_ticks(const Axis& axis, const LabelExtent& extent);
// Ticks at the values themselves where their labels do not collide, else round ones.
std::vector<Tick> ticks_at(const std::vector<double>& values, const Axis& axis, const LabelExtent& extent);

}  // namespace kintsugi::tools
