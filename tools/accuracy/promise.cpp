#include "accuracy/promise.hpp"

#include <algorithm>
#include <cmath>

#include "accuracy/methods.hpp"
#include "lab/bound_check.hpp"

namespace kintsugi::tools {

Json report_of(kintsugi_handle handle) {
  return read_description("report", [handle](char* buffer, std::size_t capacity, std::size_t* needed) {
    return kintsugi_report(handle, buffer, capacity, needed);
  });
}

Json bounds_of(const Json& plan, const Json& report) {
  Json adapted = report.value("adapted", Json());
  if (!adapted.is_null()) return adapted;
  const Json& candidate = plan.at("candidates").at(0);
  Json bound = candidate.value("bound_in_window", Json());
  if (bound.is_null()) return bound;
  const Json& program = candidate.at("program");
  return {{"split_a", program.at("split_a")},
          {"split_b", program.at("split_b")},
          {"bound_in_window", std::move(bound)},
          {"bound_outside_window", candidate.at("bound_outside_window")}};
}

template <class T>
Json check_bound(const Json& bounds, core::MatrixView<const T> view_a, core::MatrixView<const T> view_b,
                 const std::vector<lab::ElementError>& elements) {
  if (bounds.is_null()) return nullptr;
  const auto a = lab::vector_norms(view_a, lab::split_window(description_of(bounds.at("split_a"))));
  const auto b =
      lab::vector_norms(view_b.transposed(), lab::split_window(description_of(bounds.at("split_b"))));
  const bool in_window = a.in_window && b.in_window;
  Json bound = bounds.at(in_window ? "bound_in_window" : "bound_outside_window");
  const lab::BoundCoefficients coefficients{.relative = bound.at("relative"),
                                            .floor_a = bound.at("floor_a"),
                                            .floor_b = bound.at("floor_b"),
                                            .floor_both = bound.at("floor_both")};
  double largest_ratio = 0;
  for (const auto& element : elements) {
    const double ratio = std::fabs(element.error) / lab::allowed_error<T>(coefficients, element, a, b);
    largest_ratio = std::max(largest_ratio, std::isnan(ratio) ? HUGE_VAL : ratio);
  }
  bound["in_window"] = in_window;
  const bool is_promised = !a.overflows && !b.overflows;
  bound["largest_ratio"] = is_promised ? number(largest_ratio) : Json();
  bound["held"] = is_promised ? Json(largest_ratio <= 1) : Json();
  return bound;
}

template Json check_bound(const Json&, core::MatrixView<const float>, core::MatrixView<const float>,
                          const std::vector<lab::ElementError>&);
template Json check_bound(const Json&, core::MatrixView<const double>, core::MatrixView<const double>,
                          const std::vector<lab::ElementError>&);

}  // namespace kintsugi::tools
