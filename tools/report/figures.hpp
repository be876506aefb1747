// The figures that the rows of kintsugi accuracy have enough points for.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "report/svg.hpp"
#include "support.hpp"

namespace kintsugi::tools {

struct Measure {
  const char* member;  // of a row's errors
  const char* label;
};
inline constexpr std::array<Measure, 4> measures{{
    {"frobenius_relative", "Frobenius, |C - R| / |R|"},
    {"max_componentwise", "largest componentwise, |C - R| / (|A||B|)"},
    {"max_relative", "largest relative, |C - R| / |R|"},
    {"mean_relative", "mean relative (MRED)"},
}};

struct Figure {
  std::string title;                 // without the measure
  std::vector<Chart> charts;         // one for each of `measures`
  std::vector<std::string> remarks;  // one for each, "" for none
};

// Against k for each distribution and m, n; against m = n for each distribution and k; against a distribution's
// parameter for each shape: wherever there are two values or more.
std::vector<Figure> make_figures(const std::vector<Json>& rows);

// scheme, engine and accumulator of a row.
std::string method_text(const Json& row);

}  // namespace kintsugi::tools
