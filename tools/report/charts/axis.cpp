#include "report/charts/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace kintsugi::tools {

namespace {

// Rounding errors that are accepted, as a fraction of a decade or a step: 10^log10(x) need not equal x.
constexpr double tolerance = 1e-9;

// Ticks are 1, 2 or 5 times a power of ten. Returns the largest tick that is at most `value`.
double round_below(double value) {
  const double decade = std::pow(10.0, std::floor(std::log10(value) + tolerance));
  double best = decade;
  for (const double factor : {2.0, 5.0}) {
    if (factor * decade <= value * (1 + tolerance)) best = factor * decade;
  }
  return best;
}

// Returns the smallest tick that is at least `value`.
double round_above(double value) {
  const double decade = std::pow(10.0, std::floor(std::log10(value) + tolerance));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * decade >= value * (1 - tolerance)) return factor * decade;
  }
  return 10 * decade;
}

bool is_inside(const Axis& axis, double value) {
  const double slack = tolerance * std::fabs(axis.to - axis.from);
  const double scaled = axis.scaled(value);
  return scaled >= axis.from - slack && scaled <= axis.to + slack;
}

void set_logarithmic_ends(Axis& axis, double smallest, double largest) {
  if (std::log10(largest / smallest) >= 2) {
    axis.from = std::floor(std::log10(smallest) + tolerance);
    axis.to = std::ceil(std::log10(largest) - tolerance);
    return;
  }
  double low = round_below(smallest);
  double high = round_above(largest);
  const bool is_single_tick = high <= low * (1 + tolerance);
  if (is_single_tick) {  // The axis then ends at the two neighbouring ticks.
    low = round_below(low * 0.6);
    high = round_above(high * 1.5);
  }
  axis.from = std::log10(low);
  axis.to = std::log10(high);
}

void set_linear_ends(Axis& axis, double smallest, double largest) {
  axis.from = std::min(0.0, smallest);
  axis.to = std::max(0.0, largest);
  if (axis.to == axis.from) axis.to += 1;
  const double step = round_above((axis.to - axis.from) / 10);
  axis.from = step * std::floor(axis.from / step + tolerance);
  axis.to = step * std::ceil(axis.to / step - tolerance);
}

// True if labels of neighbouring ticks would overlap.
bool collide(const std::vector<Tick>& ticks, const Axis& axis, const LabelExtent& extent) {
  for (std::size_t i = 1; i < ticks.size(); ++i) {
    const double distance = std::fabs(axis.pixel(ticks[i].value) - axis.pixel(ticks[i - 1].value));
    if (distance < (extent(ticks[i].label) + extent(ticks[i - 1].label)) / 2) return true;
  }
  return false;
}

// Returns ticks at every `every`-th power of ten, times each of the factors.
std::vector<Tick> decades(const Axis& axis, int every, const std::vector<double>& factors) {
  std::vector<Tick> ticks;
  const int first = static_cast<int>(std::floor(axis.from));
  for (int decade = first; decade <= axis.to + tolerance; ++decade) {
    if (decade % every != 0) continue;
    for (const double factor : factors) {
      const double value = factor * std::pow(10.0, decade);
      if (is_inside(axis, value)) ticks.push_back({value, tick_label(value)});
    }
  }
  return ticks;
}

// Returns ticks at multiples of a step.
std::vector<Tick> steps(const Axis& axis, double step) {
  std::vector<Tick> ticks;
  for (double i = std::ceil(axis.from / step - tolerance); i * step <= axis.to + tolerance * step; ++i)
    ticks.push_back({i * step, tick_label(i * step)});
  return ticks;
}

}  // namespace

double Axis::scaled(double value) const { return logarithmic ? std::log10(value) : value; }

double Axis::pixel(double value) const {
  return start + (scaled(value) - from) / (to - from) * (end - start);
}

Axis axis_with_margin(bool logarithmic, const std::vector<double>& values, double start, double end) {
  Axis axis{.start = start, .end = end, .logarithmic = logarithmic};
  if (values.empty()) return axis;
  const auto [smallest, largest] = std::minmax_element(values.begin(), values.end());
  axis.from = axis.scaled(*smallest);
  axis.to = axis.scaled(*largest);
  const double margin = axis.to > axis.from ? 0.03 * (axis.to - axis.from) : 0.5;
  axis.from -= margin;
  axis.to += margin;
  return axis;
}

Axis axis_between_ticks(bool logarithmic, const std::vector<double>& values, double start, double end) {
  Axis axis{.start = start, .end = end, .logarithmic = logarithmic};
  if (values.empty()) return axis;
  const auto [smallest, largest] = std::minmax_element(values.begin(), values.end());
  if (logarithmic) {
    set_logarithmic_ends(axis, *smallest, *largest);
  } else {
    set_linear_ends(axis, *smallest, *largest);
  }
  return axis;
}

std::string tick_label(double value) {
  const double magnitude = std::fabs(value);
  const bool needs_no_exponent = magnitude == 0 || (magnitude >= 0.999e-3 && magnitude < 1e6);
  if (needs_no_exponent) return fmt::format("{:.6g}", value);
  const std::string text = fmt::format("{:.2e}", value);  // "2.00e-07"
  const auto e = text.find('e');
  return fmt::format("{:g}e{}", std::stod(text.substr(0, e)), std::stoi(text.substr(e + 1)));
}

std::vector<Tick> round_ticks(const Axis& axis, const LabelExtent& extent) {
  if (axis.logarithmic) {
    std::vector<Tick> ticks = decades(axis, 1, {1, 2, 5});
    for (int every = 1; collide(ticks, axis, extent); ++every) ticks = decades(axis, every, {1});
    return ticks;
  }
  double step = round_above((axis.to - axis.from) / 10);
  std::vector<Tick> ticks = steps(axis, step);
  while (collide(ticks, axis, extent)) {
    step = round_above(1.1 * step);
    ticks = steps(axis, step);
  }
  return ticks;
}

std::vector<Tick> ticks_at(const std::vector<double>& values, const Axis& axis, const LabelExtent& extent) {
  std::vector<Tick> ticks;
  for (const double value : std::set<double>(values.begin(), values.end()))
    ticks.push_back({value, tick_label(value)});
  return collide(ticks, axis, extent) ? round_ticks(axis, extent) : ticks;
}

}  // namespace kintsugi::tools
