// Chooses colours, dashes, markers and labels of lines, which are the same in every figure.
#pragma once

#include <string>
#include <vector>

#include "report/charts/svg.hpp"
#include "support.hpp"

namespace kintsugi::tools {

// Colours distinguish schemes. Dashes and markers distinguish engines and accumulators. Labels name scheme,
// engine and accumulator.
class Looks {
 public:
  explicit Looks(const std::vector<Json>& rows);

  // Returns the line to which a row belongs. `scheme`: the row's scheme without the parameter that is on the
  // x axis. The label begins with `name` if it is given, else with the scheme.
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
