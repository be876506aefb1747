// Colours, dashes, markers and labels of lines, the same in every figure.
#pragma once

#include <string>
#include <vector>

#include "report/charts/svg.hpp"
#include "support.hpp"

namespace kintsugi::tools {

// Colours distinguish schemes, dashes and markers engine and accumulator; labels have all three.
class Looks {
 public:
  explicit Looks(const std::vector<Json>& rows);

  // Returns the line to which a row belongs. `scheme` is the row's scheme without the parameter on the x
  // axis; the label begins with `name`, or else with the scheme.
  Series series_of(const Json& row, const std::string& scheme);
  Series series_of(const Json& row, const std::string& scheme, const std::string& name);

 private:
  std::vector<std::string> schemes_;
  std::vector<std::string> engines_;
};

// Returns the chart's line with the label of `wanted`; adds it if there is none.
Series& series_in(Chart& chart, const Series& wanted);
// Adds a point. Of consecutive points with the same x, which differ by the seed, only the largest y is kept.
void add_point(Series& series, double x, double y);

}  // namespace kintsugi::tools
