// Colours, dashes and names of lines, in every figure alike.
#pragma once

#include <string>
#include <vector>

#include "report/charts/svg.hpp"
#include "support.hpp"

namespace kintsugi::tools {

// Colours stand for schemes, dashes and markers for engine and accumulator; names are of all three.
class Looks {
 public:
  explicit Looks(const std::vector<Json>& rows);

  // `scheme` stands for the row's own where a part of that runs along x.
  Series series_of(const Json& row, const std::string& scheme);

 private:
  std::vector<std::string> schemes_;
  std::vector<std::string> engines_;
};

// The chart's line of that name, made if there is none.
Series& series_in(Chart& chart, const Series& wanted);
// Of points that follow each other with one x the largest y is kept: that of the worst seed.
void add_point(Series& series, double x, double y);

}  // namespace kintsugi::tools
