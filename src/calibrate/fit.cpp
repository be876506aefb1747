#include "calibrate/tasks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/text/format_text.hpp"
#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/arch/family.hpp"

namespace kintsugi::core::calibrate {

namespace {

// A kind of measurements, and the costs that are fitted to them: all costs whose names begin with one of the
// prefixes. The expected times of a kind may also depend on costs that were fitted to earlier kinds.
struct FittedKind {
  std::string_view kind;
  std::array<std::string_view, 4> cost_prefixes;
};
constexpr std::array fitted_kinds{
    FittedKind{"copy", {"call.copy_rate"}},
    FittedKind{"splits", {"call.split_"}},
    FittedKind{"multi_term", {"multi_term."}},
    FittedKind{"vendor", {"call.native_"}},
    FittedKind{"own_native_f32",
               {"native_call.own_launch", "native_call.tile_ends", "native.f32.tile_index"}},
    FittedKind{"own_native_f64", {"native.f64.tile_index"}},
    FittedKind{"own_native_c32", {"native.c32.tile_index"}},
    FittedKind{"own_native_c64", {"native.c64.tile_index"}},
    FittedKind{"vendor_f32", {"native.f32.vendor_", "native.f32.unaligned_rate"}},
    FittedKind{"vendor_f64", {"native.f64.vendor_", "native.f64.unaligned_rate"}},
    FittedKind{"vendor_c32", {"native.c32.vendor_", "native.c32.unaligned_rate"}},
    FittedKind{"vendor_c64", {"native.c64.vendor_", "native.c64.unaligned_rate"}},
    FittedKind{"small_vendor", {"native_call.vendor_launch"}},
    FittedKind{"int8", {"int8_tile."}},
    FittedKind{"packing", {"packing."}},
    FittedKind{"weighted_tiles", {"weighted_tiles."}},
    FittedKind{"calls", {"call.selection", "call.throttling", "call.throttled_product", "call.result"}},
    FittedKind{"prepared_calls", {"call.prepared_selection"}},
    FittedKind{"residues_f64", {"residues.f64."}},
    FittedKind{"residues_c32", {"residues.c32."}},
    FittedKind{"residues_c64", {"residues.c64."}}};

bool is_fitted(const FittedKind& kind, std::string_view cost) {
  return std::ranges::any_of(kind.cost_prefixes, [&](std::string_view prefix) {
    return !prefix.empty() && cost.starts_with(prefix);
  });
}

// A measurement of the kind that is fitted, and its expected time by the costs as they are now.
struct Point {
  const std::string* what;
  double microseconds;
  std::function<double()> expected;
};

// Returns the Huber loss of log(measured / expected), summed over the measurements. The loss is quadratic up
// to 10 % and linear beyond, so that a single shape which the model does not explain has little influence.
double loss(std::span<const Point> points) {
  constexpr double max_quadratic = 0.1;
  double sum = 0;
  for (const Point& point : points) {
    const double deviation = std::abs(std::log(point.microseconds / point.expected()));
    sum +=
        deviation < max_quadratic ? deviation * deviation : max_quadratic * (2 * deviation - max_quadratic);
  }
  return sum;
}

// Returns the penalty for the change of a cost. It is so small that it has an effect only if no measurement
// depends on the cost. Such a cost keeps its value.
double penalty(double value, double before) {
  constexpr double weight = 1e-4;
  const double change = std::log(value / before);
  return weight * change * change;
}

// Multiplies each cost by `factor` or by its inverse if that lowers the loss. Sets `min_loss` to the new
// loss. Returns true if a cost has changed. `before`: the costs' values before the fit.
bool sweep(std::span<double* const> costs, const std::vector<double>& before, std::span<const Point> points,
           double factor, double& min_loss) {
  constexpr double max_change = 64;
  bool improved = false;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    double& value = *costs[i];
    const double old = value;
    for (const double candidate : {old * factor, old / factor}) {
      value = candidate;
      const double change = value / before[i];
      const double new_loss = loss(points);
      if (change < max_change && change > 1 / max_change &&
          new_loss + penalty(value, before[i]) < min_loss + penalty(old, before[i])) {
        min_loss = new_loss;
        improved = true;
        break;
      }
      value = old;
    }
  }
  return improved;
}

// Fits the costs. Sweeps over them with one factor as long as that lowers the loss, then with a smaller
// factor.
void descend(std::span<double* const> costs, std::span<const Point> points) {
  constexpr int max_sweeps = 30;  // sweeps with the same factor
  std::vector<double> before;
  for (const double* cost : costs) before.push_back(*cost);
  double min_loss = loss(points);
  for (double step = 0.4; step > 0.0005; step /= 2) {
    for (int sweeps = 0; sweeps < max_sweeps; ++sweeps) {
      if (!sweep(costs, before, points, 1 + step, min_loss)) break;
    }
  }
}

ProfileFit describe_fit(std::string_view kind, std::span<const Point> points) {
  const auto deviation = [](const Point& point) {
    return std::abs(point.microseconds / point.expected() - 1);
  };
  std::vector<double> deviations;
  for (const Point& point : points) deviations.push_back(deviation(point));
  std::ranges::sort(deviations);
  const Point& worst = *std::ranges::max_element(points, {}, deviation);
  return {std::string(kind), static_cast<int>(deviations.size()), deviations[deviations.size() / 2],
          deviations.back(),
          fmt::format("{}: {:.1f} us, expected {:.1f}", *worst.what, worst.microseconds, worst.expected())};
}

// Fits the costs of `fields` that are_fitted(name) to the measurements of one kind, and appends the fit.
// Costs of 0 are costs that the device does not have.
template <class Costs, class Fields, class AreFitted>
void fit_kind(std::string_view kind, Costs& costs, const Fields& fields, const AreFitted& are_fitted,
              std::span<const MeasurementBy<Costs>> measurements, std::vector<ProfileFit>& fits) {
  std::vector<Point> points;
  for (const auto& measurement : measurements) {
    if (measurement.kind == kind)
      points.push_back({&measurement.what, measurement.microseconds,
                        [&costs, &measurement] { return measurement.expected(costs); }});
  }
  if (points.empty()) return;
  std::vector<double*> fitted;
  for (const auto& field : fields) {
    if (are_fitted(std::string_view(field.name)) && *field.value > 0) fitted.push_back(field.value);
  }
  descend(fitted, points);
  fits.push_back(describe_fit(kind, points));
}

}  // namespace

std::vector<ProfileFit> fit_costs(cuda::Costs& costs, std::span<const Measurement> measurements) {
  std::vector<ProfileFit> fits;
  const std::vector<cuda::CostField> fields = cuda::cost_fields(costs, cuda::current_family());
  for (const FittedKind& kind : fitted_kinds)
    fit_kind(
        kind.kind, costs, fields, [&](std::string_view name) { return is_fitted(kind, name); }, measurements,
        fits);
  return fits;
}

// A kind has the costs whose names are its name, a dot and one word.
std::vector<ProfileFit> fit_costs(CpuCosts& costs, std::span<const CpuMeasurement> measurements) {
  std::vector<ProfileFit> fits;
  const std::vector<CpuCostField> fields = cost_fields(costs);
  for (const std::string_view kind :
       {"one.native", "one.residues", "one.digits", "all.native", "all.residues", "all.digits"})
    fit_kind(
        kind, costs, fields, [&](std::string_view name) { return name.substr(0, name.rfind('.')) == kind; },
        measurements, fits);
  return fits;
}

}  // namespace kintsugi::core::calibrate
