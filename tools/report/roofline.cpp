#include "report/roofline.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "report/dimensions.hpp"

namespace kintsugi::tools {

namespace {

struct Roofline {
  Chart chart;
  const Json* ceilings = nullptr;
  std::set<std::string> formats;  // of the slices, whose units have ceilings
};

constexpr double to_tera = 1e-12;

// Returns the point of a row: operations per byte, and 10^12 operations per second.
std::pair<double, double> point_of(const Json& row) {
  const Json& products = row.at("products");
  const double rate = (products.is_null() ? 1 : read_number(products)) * read_number(row.at("rate"));
  return {rate / read_number(row.at("bandwidth")), to_tera * rate};
}

Roofline& roofline_of(const Json& row, std::vector<Roofline>& rooflines) {
  std::string title = fmt::format("{}: roofline of {}", cell(row, "distribution"), cell(row, "accumulator"));
  if (row_type(row) != "fp32") title += ", " + row_type(row);
  const auto found = std::find_if(rooflines.begin(), rooflines.end(),
                                  [&](const Roofline& roofline) { return roofline.chart.title == title; });
  if (found != rooflines.end()) return *found;
  Roofline roofline;
  roofline.chart.title = title;
  roofline.chart.x_label = "operations of the slices' products for a byte of A, B and C";
  roofline.chart.y_label = "10^12 operations a second";
  roofline.chart.ticks_at_points = false;
  roofline.ceilings = &row.at("ceilings");
  rooflines.push_back(std::move(roofline));
  return rooflines.back();
}

double ceiling_of(const Roofline& roofline, const std::string& name) {
  return to_tera * read_number(roofline.ceilings->at(name).at("rate"));
}

// Adds the lines of ceilings. The memory's line rises from the first point's x to the line of the fastest
// units. The lines of units are horizontal, and begin at the x from which the memory is fast enough for the
// unit's rate. A unit's line is left out if it would begin beyond the last point.
void add_ceilings(Roofline& roofline) {
  double first = std::numeric_limits<double>::infinity();
  double last = 0;
  for (const Series& series : roofline.chart.series) {
    for (const auto& point : series.points) {
      first = std::min(first, point.first);
      last = std::max(last, point.first);
    }
  }
  int style = 0;
  double knee = 0;  // operations per byte at which the memory's line meets that of the fastest units
  const double bandwidth = ceiling_of(roofline, "copy");
  for (const std::string& format : roofline.formats) {
    const double rate = ceiling_of(roofline, format);
    knee = std::max(knee, rate / bandwidth);
    if (rate / bandwidth >= last) continue;
    roofline.chart.limits.push_back({.label = fmt::format("{} units, {:.4g} T/s", format, rate),
                                     .colour = colour_of_text,
                                     .style = ++style,
                                     .points = {{std::max(first, rate / bandwidth), rate}, {last, rate}}});
  }
  const double end = knee > 0 ? std::min(knee, last) : last;
  if (first < end) {
    roofline.chart.limits.push_back({.label = fmt::format("memory, {:.3g} TB/s", bandwidth),
                                     .colour = colour_of_text,
                                     .style = 0,
                                     .points = {{first, bandwidth * first}, {end, bandwidth * end}}});
  }
}

}  // namespace

void add_rooflines(const std::vector<Json>& rows, Looks& looks, std::vector<Figure>& figures) {
  std::vector<Roofline> rooflines;
  for (const Json& row : rows) {
    if (!row.contains("ceilings") || row.at("ceilings").is_null()) continue;
    Roofline& roofline = roofline_of(row, rooflines);
    const Json& bench = row.at("bench");
    series_in(roofline.chart, looks.series_of(row, cell(row, "scheme"))).points.push_back(point_of(bench));
    const std::string format = cell(bench, "format");
    if (roofline.ceilings->contains(format)) roofline.formats.insert(format);
  }
  for (Roofline& roofline : rooflines) {
    for (Series& series : roofline.chart.series) std::sort(series.points.begin(), series.points.end());
    add_ceilings(roofline);
    figures.push_back({roofline.chart.title, {{.chart = roofline.chart, .name = "roofline"}}});
  }
}

}  // namespace kintsugi::tools
