// Makes figures from rows of kintsugi-lab accuracy or kintsugi bench, if they have enough points.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report/charts.hpp"
#include "support.hpp"

namespace kintsugi::tools {

enum class MeasureKind : std::uint8_t { error, difference_to_native, rate };

struct Measure {
  const char* member;  // member of a row's errors; of the row if it is a rate
  const char* label;
  MeasureKind kind = MeasureKind::error;
  bool ratio = false;  // true: the y axis is linear from 0 if the values are within a factor of 20
};
inline constexpr std::array<Measure, 11> measures{{
    {"frobenius_relative", "Frobenius, |C - R| / |R|"},
    {"max_componentwise", "largest componentwise, |C - R| / (|A||B|)"},
    {"max_relative", "largest relative, |C - R| / |R|"},
    {"mean_relative", "mean relative, |C - R| / |R|"},
    {"mean_relative_long_double", "mean relative, R summed in 80-bit long double"},
    {"le_gemm_max_error", "Max_error, largest |C - S| / (|C| + |S|), S native",
     MeasureKind::difference_to_native},
    {"le_gemm_mred", "MRED, mean |C - S| / |S|, S native", MeasureKind::difference_to_native},
    {"rate", "rate in GFLOP/s, 2 m n k a product (complex: 8) over the quickest time", MeasureKind::rate},
    {"device_rate", "rate in TFLOP/s, 2 m n k a product (complex: 8) over the median time",
     MeasureKind::rate},
    {"ratio_to_native", "rate over the native product's", MeasureKind::rate, true},
    {"of_ceiling", "part of what the slices' matrix units do at most", MeasureKind::rate, true},
}};

struct Picture {
  Chart chart;
  std::string name;         // name of the measure, or of another subject; part of the file name
  std::string remark = {};  // "": none
  int measure = -1;         // index in `measures`; -1: none of them
};

struct Figure {
  std::string title;  // without the measure
  std::vector<Picture> pictures;
};

// Selection of figures, by the labels of dimensions and the members of measures; an empty list selects all.
struct Selection {
  std::vector<std::string> dimensions;
  std::vector<std::string> measures;
  std::size_t min_values = 2;  // fewest values of x for which there is a figure
};

// Returns figures of errors, or of rates in rows of rate_row():
// - against k, for each distribution, m and n;
// - against m = n, for each distribution and k;
// - against m = n = k;
// - against a parameter of the distribution or of the scheme;
// - rooflines of devices;
// - histograms, one figure for each problem, distribution and seed.
// A figure needs at least two values of x. It has one picture for every measure in the rows. fp32 and fp64
// are in separate figures.
std::vector<Figure> make_figures(const std::vector<Json>& rows, const Selection& selection = {});

// Returns fp32 or fp64.
std::string row_type(const Json& row);

}  // namespace kintsugi::tools
